// Command faultserver is a tarn whose disk can be made slow or full while it
// serves, or lies about what is durable. It is put together from the packages
// that make up tarn serve; only the file system below the store is another.
//
// It takes commands from its standard input, a line each, and answers each
// with the line "done":
//
//	slow MIN MAX  each sync takes so much longer, for example slow 5ms 60ms
//	room BYTES    only that much more can be written
//	full          room 0
//	good          neither slow nor full
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/store/vfs"
)

// stopLimit is how long a clean stop waits for requests in flight.
const stopLimit = 3 * time.Second

type settings struct {
	listen        string
	store         store.Options
	disk          string
	ackBeforeSync time.Duration
}

// parseSettings reads flags with the names that tarn serve has for them.
func parseSettings() (o settings) {
	flag.StringVar(&o.listen, "listen-client-urls", "http://127.0.0.1:2379", "where to serve clients")
	flag.StringVar(&o.store.Dir, "data-dir", "", "directory of the data")
	flag.Int64Var(&o.store.CheckpointBytes, "checkpoint-bytes", 0, "changes in the log that cause a checkpoint")
	flag.DurationVar(&o.store.CheckpointAge, "checkpoint-age", 0, "how long a change may be in the log only")
	flag.DurationVar(&o.store.ProgressInterval, "watch-progress-notify-interval", 0, "time between unasked progress messages")
	flag.StringVar(&o.disk, "disk", "good", "command to begin with")
	flag.DurationVar(&o.ackBeforeSync, "ack-before-sync", 0,
		"let each sync of the log return at once, and write only after this time: broken on purpose")
	flag.Parse()
	return o
}

func main() {
	o := parseSettings()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serve(o, log); err != nil {
		log.Error("faultserver ends", "error", err)
		os.Exit(1)
	}
}

func serve(o settings, log *slog.Logger) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url, err := etcdapi.ParseListenURL(o.listen)
	if err != nil {
		return err
	}
	listener, err := etcdapi.Listen(url)
	if err != nil {
		return err
	}
	defer listener.Close()
	disk := newDisk(vfs.OS)
	begin, err := parseFaults(o.disk)
	if err != nil {
		return err
	}
	disk.set(begin)
	o.store.Logger, o.store.FS = log, disk
	if o.ackBeforeSync > 0 {
		o.store.FS = newLiar(disk, o.ackBeforeSync)
	}
	s, err := store.Open(o.store)
	if err != nil {
		return err
	}
	api, err := etcdapi.New(etcdapi.Config{Store: s, Logger: log, ClientURLs: []string{o.listen}})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- api.Serve(listener) }()
	go obey(disk, os.Stdin, os.Stdout)
	select {
	case <-ctx.Done():
	case err = <-failed:
	case <-s.Failed():
		err = s.Err()
	}
	disk.set(faults{room: unlimited}) // a stop must not wait for a slow disk
	stopCtx, cancelStop := context.WithTimeout(context.Background(), stopLimit)
	defer cancelStop()
	if stopErr := api.Stop(stopCtx); stopErr != nil {
		log.Warn("some requests were cut off", "error", stopErr)
	}
	return errors.Join(err, s.Close())
}

// obey carries out commands until there are no more.
func obey(d *disk, in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer := "done"
		if f, err := parseFaults(lines.Text()); err != nil {
			answer = err.Error()
		} else {
			d.set(f)
		}
		fmt.Fprintln(out, answer)
	}
}
