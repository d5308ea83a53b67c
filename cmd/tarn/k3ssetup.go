package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// elections is whether the components of the control plane elect a leader.
type elections string

const (
	electionsAuto elections = "auto"
	electionsOn   elections = "on"
	electionsOff  elections = "off"
)

// k3sSetupOptions are the settings of tarn k3s setup.
type k3sSetupOptions struct {
	server        clientOptions
	endpointGiven bool
	version       string // of k3s; "" to ask k3s
	elect         elections
	slowLease     bool
	rootless      bool
	write, dryRun bool
	undo, force   bool
	skipKubelet   bool
	timeout       time.Duration
	output        outputFormat

	machine machine
	kubelet kubeletOptions
	socket  string // where an installed Tarn listens
	root    string // directory that stands for /, for tests; "" for /
}

func defaultK3sSetupOptions() k3sSetupOptions {
	return k3sSetupOptions{
		server: defaultClientOptions(), elect: electionsAuto, timeout: 15 * time.Second, output: outputText, machine: thisMachine(),
		kubelet: defaultKubeletOptions(), socket: installedSocket,
	}
}

func newK3sSetupCommand(p process) *cobra.Command {
	opts := defaultK3sSetupOptions()
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Write the configuration with which k3s uses Tarn",
		Long: `Show, and with --write install, the files with which k3s keeps its data in Tarn:

  /etc/rancher/k3s/config.yaml.d/50-tarn.yaml
           the datastore's endpoint: a unix socket where this version of k3s can use
           one, else 127.0.0.1. Leader election off, if this is the only server
  /etc/systemd/system/k3s.service.d/10-tarn.conf
           k3s starts after Tarn, and when what it needs is mounted
  the file of tarn kubelet config, if the kubelet is on ZFS

Before, it looks whether anything else would win over them (an embedded etcd, other
files, the command line of k3s), and asks the server what k3s and kube-apiserver will
ask, which writes a key of its own and removes it again (not with --dry-run). Problems
keep the files from being written, unless --force says so.

It can be run again at any time. A file that somebody has changed since is left alone
and shown; --force replaces it. --undo removes the files again. k3s is never
restarted: the commands for that are printed.

--endpoint, --cacert, --cert and --key can be environment variables, such as
TARN_ENDPOINT. --user has no effect: k3s can not log in with a name and a password,
and the server is asked as k3s will ask it.

Exit codes: 0 shown, written, or nothing was to do, 1 failed, 2 the command line is
not valid, 4 refused: something is in the way (what, and what to do, is printed),
5 not everything could be looked at, and then nothing is written.`,
		Args: exactArgs(0),
	}
	fs := cmd.Flags()
	opts.register(fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l := newLayers(fs, nil, p.environ)
		if err := l.applyEnv(); err != nil {
			return err
		}
		if err := opts.server.absoluteFiles(); err != nil {
			return withExit(exitUsage, err)
		}
		opts.endpointGiven = l.from.of("endpoint") != fromDefault
		if opts.undo && l.from.of("endpoint") == fromFlag { // one of the environment is for all commands
			return withExit(exitUsage, errors.New("--undo takes no --endpoint: it only removes files"))
		}
		return runK3sSetup(cmd.Context(), opts, p.stdout)
	}
	return cmd
}

// absoluteFiles makes the paths of the files for TLS absolute: k3s runs in another directory.
func (o *clientOptions) absoluteFiles() error {
	for _, file := range []*string{&o.caFile, &o.certFile, &o.keyFile} {
		if *file == "" {
			continue
		}
		abs, err := filepath.Abs(*file)
		if err != nil {
			return fmt.Errorf("find the file %s: %w", *file, err)
		}
		*file = abs
	}
	return nil
}

func (o *k3sSetupOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	boolFlag(fs, &o.write, "write", "write the files; without it they are only shown")
	boolFlag(fs, &o.dryRun, "dry-run", "show the files and write nothing, to the server neither; wins over --write")
	boolFlag(fs, &o.undo, "undo", "remove the files (with --write)")
	boolFlag(fs, &o.force, "force", "write in spite of problems, and replace or remove files that were changed by hand")
	fs.Var(choiceValue(&o.elect, electionsAuto, electionsOn, electionsOff), "leader-election",
		"leader election of the control plane; auto: off if only this machine can reach the endpoint, so that there is one server")
	boolFlag(fs, &o.slowLease, "slow-lease", "let k3s renew its own lease every 30 s and not every 2 s; it can not be switched off")
	fs.Var(stringValue(&o.version, "version", "a version of k3s such as v1.36.2+k3s1"), "k3s-version", "version of k3s that the files are for (default: the installed one)")
	boolFlag(fs, &o.skipKubelet, "skip-kubelet", "leave out the file of tarn kubelet config")
	boolFlag(fs, &o.rootless, "rootless", "k3s runs rootless, as the user that runs this")
	o.server.register(fs)
	fs.Var(durationValue(&o.timeout, time.Millisecond), "timeout", "how long the questions to the server, and those to k3s and zfs, may take")
	addOutputFlag(fs, &o.output)
}

// k3sSetupReport is what tarn k3s setup prints; the JSON names are stable.
type k3sSetupReport struct {
	K3sVersion string      `json:"k3sVersion"` // "" if it is not known
	Endpoint   string      `json:"endpoint"`
	Files      []setupFile `json:"files"`
	Findings   []finding   `json:"findings"`
	Written    bool        `json:"written"` // files were changed

	installed bool // k3s is there
}

func runK3sSetup(ctx context.Context, opts k3sSetupOptions, out io.Writer) error {
	facts, err := opts.gatherK3s(ctx)
	if err != nil {
		return err
	}
	plan := opts.plan(ctx, facts)
	report := k3sSetupReport{K3sVersion: facts.versionText(), Endpoint: plan.endpoint, Files: slices.Concat(plan.files, plan.kubelet), Findings: byWeight(plan.found.all()), installed: facts.installed}
	blocked := opts.blocked(plan)
	var failed error
	if blocked == nil && opts.write && !opts.dryRun {
		if failed = writeSetupFiles(opts.root, plan.files, setupModeOf, opts.force); failed == nil {
			failed = writeSetupFiles(opts.root, plan.kubelet, kubeletModeOf, true)
		}
		report.Written = failed == nil && anyChange(report.Files)
	}
	if opts.output == outputJSON {
		err = json.NewEncoder(out).Encode(report)
	} else {
		_, err = io.WriteString(out, opts.page(report, blocked == nil && failed == nil))
	}
	switch {
	case err != nil:
		return fmt.Errorf("print the files: %w", err)
	case failed != nil:
		return failed
	case blocked != nil && opts.write:
		return withExit(exitRefused, blocked)
	case plan.unread:
		return &exitError{code: exitNotAllSeen, err: errors.New("not everything was seen"), told: true}
	}
	return nil
}

// blocked tells what forbids to write.
func (o *k3sSetupOptions) blocked(plan k3sPlan) error {
	if o.force {
		return nil
	}
	for _, file := range plan.files {
		if file.State == fileForeign && file.Link != "" {
			return fmt.Errorf("%s was not made by tarn k3s setup, and nothing was written: remove the link, or replace it, and not what it leads to, with --force", file.name())
		}
		if file.State == fileForeign {
			return fmt.Errorf("%s is there and was not made by tarn k3s setup, and nothing was written: take over what you need and remove it, or replace it with --force", file.Path)
		}
		if file.State == fileEdited {
			return fmt.Errorf("%s was changed by hand, and nothing was written: take over what you need and remove it, or replace it with --force", file.Path)
		}
	}
	if n := countWeight(plan.found.all(), weightProblem); n > 0 {
		return fmt.Errorf("%d problem(s) are in the way, and nothing was written; solve what is shown as PROBLEM, or write in spite of it with --force", n)
	}
	if plan.unread {
		return withExit(exitNotAllSeen, errors.New("not all that k3s has could be looked at, and nothing was written: see what is shown as unknown, and do what is said there (mostly: run the command as root), or write all the same with --force"))
	}
	return nil
}

// gatherK3s reads how k3s is set up on the machine.
func (o *k3sSetupOptions) gatherK3s(ctx context.Context) (k3sFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	facts := readK3sFacts(ctx, o.machine, o.rootless)
	if o.version != "" {
		v, err := eviction.ParseVersion(o.version)
		if err != nil {
			return facts, withExit(exitUsage, fmt.Errorf("--k3s-version can not be %q; valid: a version such as v1.36.2+k3s1", o.version))
		}
		facts.version = v
	}
	return facts, nil
}
