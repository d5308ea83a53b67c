package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// doctorOptions are the settings of tarn doctor.
type doctorOptions struct {
	sourceOptions
	server clientOptions
	// endpointGiven tells that somebody has named the endpoint; socket is where an installed Tarn listens.
	endpointGiven bool
	socket        string

	timeout time.Duration
	brief   bool
	output  outputFormat
	usage   func(dir string) (vfs.Usage, error) // of a file system
	mounts  string                              // the table of mounts
	machine machine
	kubelet kubeletOptions
}

func defaultDoctorOptions() doctorOptions {
	return doctorOptions{
		sourceOptions: defaultSourceOptions(),
		server:        defaultClientOptions(),
		socket:        installedSocket,
		// A suspended pool never answers; all that works does within seconds.
		timeout: 15 * time.Second,
		output:  outputText,
		usage:   vfs.OS.Usage,
		mounts:  zfs.MountTable,
		machine: thisMachine(),
		kubelet: defaultKubeletOptions(),
	}
}

func newDoctorCommand(p process) *cobra.Command {
	opts := defaultDoctorOptions()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything and say what should be done",
		Long: `Look at all that Tarn knows about on this machine, and say in plain words what is
wrong, the most important first, and what to do about it:

  store    does the server answer as k3s and kube-apiserver will ask it, how fast
           is its disk, is there room, who fills it, is it compacted
  dataset  its properties, space, snapshots, their verification, backups elsewhere
  units    the services and timers of systemd
  kubelet  what it makes of ZFS, as tarn kubelet check says it
  k3s      whether it uses this server, as tarn k3s setup says it

Nothing is changed or written anywhere. What is not there (ZFS, systemd, k3s) or may
not be read is said, and all else is looked at; root sees everything. Each part has
--timeout for itself, so a suspended pool does not keep the others.

Without --endpoint, and where nobody listens at the default, the server is looked for
at the socket of an installed Tarn and at the endpoint of k3s.

Each flag can be an environment variable, such as TARN_ENDPOINT for --endpoint.

Exit codes: 0 nothing to do, 1 failed, 2 the command line is not valid, 3 there are
warnings, 4 there are problems, 5 neither, but something could not be looked at.`,
		Args: exactArgs(0),
	}
	flags := cmd.Flags()
	opts.register(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l := newLayers(flags, nil, p.environ)
		if err := l.applyEnv(); err != nil {
			return err
		}
		opts.endpointGiven = l.from.of("endpoint") != fromDefault
		before := opts.resolveSource(flags, p.environ)
		f := &findings{area: "store"}
		opts.findServer(cmd.Context(), f)
		return runDoctor(cmd.Context(), opts, append(before, f.all()...), p.stdout)
	}
	return cmd
}

func (o *doctorOptions) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	o.sourceOptions.register(flags)
	o.endpoint = &o.server
	o.server.register(flags)
	flags.Var(durationValue(&o.timeout, 100*time.Millisecond), "timeout", "how long each part may take")
	boolFlag(flags, &o.brief, "brief", "leave out what is in order")
	addOutputFlag(flags, &o.output)
}

// resolveSource reads the server's configuration file. A mistake there is something to report, and
// no reason to look at nothing.
func (o *doctorOptions) resolveSource(flags *pflag.FlagSet, environ []string) []finding {
	f := &findings{area: "store"}
	err := o.resolve(flags, environ)
	switch {
	case errors.Is(err, fs.ErrPermission):
		f.unknown("configuration", "run tarn doctor as root (sudo), or name --endpoint and --data-dir", "%v", err)
	case err != nil:
		f.problem("configuration", "correct it: the server does not start with it", "%v", err)
	}
	return f.all()
}

// doctorSection is one part of what is looked at.
type doctorSection struct {
	area string
	look func(context.Context, *findings)
}

// sections are the parts. Those that read files on a pool that answers nothing only say so.
func (o *doctorOptions) sections(ctx context.Context) []doctorSection {
	suspended := o.suspendedPools(ctx)
	return []doctorSection{
		{"store", o.lookAtStore},
		{"dataset", o.lookAtDataset},
		{"units", o.lookAtUnits},
		o.unless(suspended, doctorSection{"kubelet", o.lookAtKubelet}, nodeconf.K3sDataDir, nodeconf.KubeletRoot),
		o.unless(suspended, doctorSection{"k3s", o.lookAtK3s}, nodeconf.K3sDataDir),
	}
}

// doctorReport is what tarn doctor prints; the JSON names are stable.
type doctorReport struct {
	Endpoint string    `json:"endpoint"`
	DataDir  string    `json:"dataDir"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Unknown  int       `json:"unknown"`
	Findings []finding `json:"findings"` // the most important first
}

func runDoctor(ctx context.Context, opts doctorOptions, before []finding, out io.Writer) error {
	list := byWeight(append(before, lookAll(ctx, opts.sections(ctx), opts.timeout)...))
	r := doctorReport{
		Endpoint: opts.server.endpoint.String(), DataDir: opts.dataDir, Findings: list,
		Problems: countWeight(list, weightProblem), Warnings: countWeight(list, weightWarning), Unknown: countWeight(list, weightUnknown),
	}
	if opts.brief {
		r.Findings = r.Findings[:r.Problems+r.Warnings+r.Unknown]
	}
	var err error
	if opts.output == outputJSON {
		err = json.NewEncoder(out).Encode(r)
	} else if err = printFindings(out, r.Findings); err == nil {
		_, err = fmt.Fprintln(out, tally(list))
	}
	if err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	return verdictOf(list)
}

// verdictOf is the exit code for what was found; all of it has been told.
func verdictOf(list []finding) error {
	code := exitOK
	switch {
	case countWeight(list, weightProblem) > 0:
		code = exitProblems
	case countWeight(list, weightWarning) > 0:
		code = exitWarnings
	case countWeight(list, weightUnknown) > 0:
		code = exitNotAllSeen
	default:
		return nil
	}
	return &exitError{code: code, err: errors.New(tally(list)), told: true}
}

// lookAll does all parts at once and gives each the same time. One that does not end then, as on a
// suspended pool, is left behind with what it has found so far.
func lookAll(ctx context.Context, sections []doctorSection, timeout time.Duration) (all []finding) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found := make([]*findings, len(sections))
	ended := make([]chan struct{}, len(sections))
	for i, s := range sections {
		found[i], ended[i] = &findings{area: s.area}, make(chan struct{})
		go func() {
			defer close(ended[i])
			s.look(limited, found[i])
		}()
	}
	over := make(chan struct{})
	go func() {
		<-limited.Done()
		time.AfterFunc(lateness, func() { close(over) }) // those that heed the context say more about it
	}()
	for i := range sections {
		select {
		case <-ended[i]:
		case <-over:
			select {
			case <-ended[i]:
			default:
				found[i].unknown("time", "look at zpool status (a suspended pool answers nothing) and at the disks, or give a longer --timeout",
					"it did not end within %s; what it found by then is shown", shortDuration(timeout))
			}
		}
		all = append(all, found[i].all()...)
	}
	return all
}

// lateness is how long a part may take to say that its time is over.
const lateness = 500 * time.Millisecond
