package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/store/vfs"
)

// stopLimit is how long a stop waits for requests in flight. Service managers
// give 10 s or more before they kill, and the store has to close in that time too.
const stopLimit = 3 * time.Second

func newServeCommand(p process) *cobra.Command {
	opts := defaultServeOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the etcd v3 API",
		Long: `Serve the etcd v3 API from a data directory, until SIGTERM or SIGINT.

Each setting can be a flag, an environment variable (TARN_DATA_DIR for
--data-dir) or a line of the configuration file (data-dir: /var/lib/tarn).
The flag wins over the variable, the variable over the file. Flags have etcd's
names where the meaning is etcd's; flags of etcd that mean nothing here, such as
those for peers, are accepted and ignored. Variables of etcd (ETCD_…) are not
read.

SIGHUP reads log-level from the configuration file, and the files of certificates,
again. PUT of a level to /debug/log-level on a client URL changes it too.

Sockets that systemd passes (FileDescriptorName=client or metrics) take the place
of --listen-client-urls and --listen-metrics-urls, and systemd is told of the state.

Exit codes: 0 stopped by a signal, 1 failed (an address is taken, for example),
2 the settings are not valid, 3 another process has the data directory, 4 the
data directory is not the one that --store-id or --dataset names, or is etcd's, 5
the data directory is damaged, 6 a write or sync failed for good while serving.`,
		Args: exactArgs(0),
	}
	opts.register(cmd.Flags())
	opts.toleratedSettings.addExperimental(cmd.Flags(), p.args)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := opts.resolve(cmd.Flags(), p.environ)
		if err != nil {
			return err
		}
		// A reader of the log that is gone must not take the server with it.
		signal.Ignore(syscall.SIGPIPE)
		defer signal.Reset(syscall.SIGPIPE)
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		s := newServing(opts, l.from, p.stderr)
		s.warnUnknown(l.unknownEnv(cmd.Root()))
		s.warnEtcdEnv(etcdEnv(p.environ, cmd.Flags()))
		if err := s.joinSystemd(); err != nil {
			return withExit(exitUsage, err)
		}
		return s.run(cmd.Context(), hup)
	}
	return cmd
}

// serving is one run of tarn serve.
type serving struct {
	opts  serveOptions
	from  sources
	level *slog.LevelVar
	log   *slog.Logger

	keep    retention
	passed  []passedSocket
	manager serviceManager
	unwatch func()       // see watch
	disk    *vfs.Tracked // what the store sees
	// reloadTLS reads the files of certificates again; nil without TLS.
	reloadTLS func() error

	store *store.Store
	api   *etcdapi.Server
	// Tests put their own in here: open is store.Open, and ready, if set, is
	// called once with the addresses of the client listeners.
	open  func(store.Options) (*store.Store, error)
	ready func([]net.Addr)
}

func newServing(opts serveOptions, from sources, stderr io.Writer) *serving {
	level := new(slog.LevelVar)
	level.Set(opts.logLevel)
	return &serving{opts: opts, from: from, level: level, log: newLogger(stderr, opts.logFormat, level),
		disk: vfs.Track(vfs.OS), unwatch: func() {}, open: store.Open}
}

// run serves until ctx ends, the store fails or a listener fails.
func (s *serving) run(ctx context.Context, hup <-chan os.Signal) error {
	tlsConfig, err := s.validate()
	if err != nil {
		return withExit(exitUsage, err)
	}
	s.sayWhatIsOdd()
	recovered := s.beginRecovery()
	defer recovered()
	if err := s.checkDataDir(); err != nil {
		return err
	}
	s.sayWhatIsOddInDir()
	// The sockets before the store: a start that fails for an address leaves no
	// store behind.
	sockets, err := s.listen()
	if err != nil {
		return err
	}
	durations := etcdapi.NewDurations()
	if s.store, err = s.open(s.storeOptions(durations)); err != nil {
		sockets.close()
		return s.openError(err)
	}
	recovered()
	s.warnExposed(s.store.Auth().Enabled())
	defer func() { s.unwatch() }() // it is watched until it is closed
	err = s.serve(ctx, hup, sockets, s.apiConfig(tlsConfig, durations))
	if closeErr := s.store.Close(); closeErr != nil {
		err = errors.Join(err, withExit(exitStoreFailed, fmt.Errorf("close the store in %s: %w", s.opts.dataDir, closeErr)))
	}
	if err == nil {
		s.log.Info("stopped", "revision", s.store.Revision())
	}
	return err
}

// openError turns what kept the store from opening into the exit code for it.
func (s *serving) openError(err error) error {
	err = fmt.Errorf("open the store in %s: %w", s.opts.dataDir, err)
	switch {
	case errors.Is(err, store.ErrInUse):
		return withExit(exitInUse, err)
	case errors.Is(err, store.ErrForeign) && s.opts.storeID != "":
		return withExit(exitRefused, fmt.Errorf("%w (--store-id is from the %s)", err, s.from.of("store-id")))
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrRestoring):
		return withExit(exitRefused, err)
	case errors.Is(err, store.ErrDamaged):
		return withExit(exitDamaged, err)
	default:
		return withAdvice(fmt.Errorf("--data-dir (from the %s): %w", s.from.of("data-dir"), err),
			"the directory, and all in it, must belong to "+whoRuns())
	}
}

// serve runs everything that uses the open store, and returns after all of it
// has ended.
func (s *serving) serve(ctx context.Context, hup <-chan os.Signal, sockets *listeners, cfg etcdapi.Config) error {
	var err error
	if s.api, err = etcdapi.New(cfg); err != nil {
		sockets.close()
		return err
	}
	var background sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer background.Wait()
	defer cancel()
	failed := s.serveOn(sockets, &background)
	background.Go(func() {
		(&autoCompactor{store: s.store, keep: s.keep, log: s.log}).run(ctx)
	})
	for {
		select {
		case <-hup:
			s.reload()
		case <-ctx.Done():
			s.manager.notify.Stopping("stopping")
			s.log.Info("stopping")
			return s.stopAPI()
		case err := <-failed:
			s.manager.notify.Stopping("stopping: " + err.Error())
			return errors.Join(err, s.stopAPI())
		case <-s.store.Failed():
			s.manager.notify.Stopping("stopping, a write or sync failed for good: " + s.store.Err().Error())
			err := fmt.Errorf("the store in %s failed and nothing more is served: %w", s.opts.dataDir, s.store.Err())
			return errors.Join(withExit(exitStoreFailed, err), s.stopAPI())
		}
	}
}

func (s *serving) stopAPI() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := s.api.Stop(ctx); err != nil {
		// The store closes cleanly all the same: nothing is lost.
		s.log.Warn("some requests were cut off", "after", stopLimit, "error", err)
	}
	return nil
}
