package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// kubeletConfigOptions are the settings of tarn kubelet config.
type kubeletConfigOptions struct {
	kubeletOptions
	write, dryRun, undo bool
	force, logFilter    bool
	print               bool
	supplement          bool   // without ZFS, plan what is missing
	root                string // directory that stands for /, for tests; "" for /
}

func newKubeletConfigCommand(p process) *cobra.Command {
	opts := kubeletConfigOptions{kubeletOptions: defaultKubeletOptions(), supplement: true}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write the kubelet's configuration that protects a node on ZFS",
		Long: `Show, and with --write install, a configuration of the kubelet with thresholds in
bytes, which do not depend on how large the kubelet takes a dataset for. Each number
is worked out from the quotas and pools of this machine and has its reason beside it.

It is a file 90-tarn-zfs.conf in the kubelet's directory of drop-ins. k3s before 1.32
has none and gets kubelet-arg in a file beside /etc/rancher/k3s/config.yaml. A kubelet
that is not told to read a directory gets a drop-in of its unit that tells it so,
where that is possible; where not, what to write by hand is shown.

What is shown: the difference to what is there, which lines the kubelet will no longer
log, and which stay on this version whatever is configured. From 1.36.1 to 1.37.2 two
lines every 10 seconds stay; --log-filter keeps them out of the journal, with systemd
253 or later.

Without ZFS the kubelet counts right and keeps what it has: only thresholds that are
missing are written. --force writes all of them in bytes.

It can be run again at any time. A file that somebody has changed since is left alone
and shown; --force replaces it. --undo removes what was written, the filter too.
Nothing is restarted: the command for that is printed.

Each flag can be an environment variable, such as TARN_KUBELET_VERSION for
--kubelet-version.

Exit codes: 0 shown, written, or nothing was to do, 1 failed, 2 the command line is
not valid, 4 refused: something is in the way (what, and what to do, is printed).`,
		Args: exactArgs(0),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	boolFlag(fs, &opts.write, "write", "write the files; without it they are only shown")
	boolFlag(fs, &opts.dryRun, "dry-run", "only show them; wins over --write")
	boolFlag(fs, &opts.undo, "undo", "remove what was written (with --write)")
	boolFlag(fs, &opts.force, "force", "replace or remove files that were changed by hand, and write what something else will override, and all thresholds where nothing is on ZFS")
	boolFlag(fs, &opts.logFilter, "log-filter", "also keep the lines that no configuration removes out of the journal; needs systemd 253")
	boolFlag(fs, &opts.print, "print", "print nothing but the file, for a place that you choose")
	opts.register(fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := newLayers(fs, nil, p.environ).applyEnv(); err != nil {
			return err
		}
		if err := opts.validate(); err != nil {
			return withExit(exitUsage, err)
		}
		if opts.print && (opts.write || opts.undo || opts.logFilter || opts.output == outputJSON) {
			return withExit(exitUsage, errors.New("--print goes with no other way of output, and writes nothing: leave out --write, --undo, --log-filter and --output json"))
		}
		if opts.undo && opts.logFilter {
			return withExit(exitUsage, errors.New("--undo removes the filter, too: leave out --log-filter"))
		}
		return runKubeletConfig(cmd.Context(), opts, p.stdout)
	}
	return cmd
}

// kubeletConfigReport is what tarn kubelet config prints; the JSON names are stable.
type kubeletConfigReport struct {
	Layout  string           `json:"layout"`
	Version eviction.Version `json:"version"`
	// Plan is null if there is none, and Refused says why, or what else is in the way; "" if nothing is.
	Plan    *eviction.Plan `json:"plan"`
	Refused string         `json:"refused"`
	Files   []setupFile    `json:"files"`
	// ByHand are what a person must do where no file of ours can; [] if nothing.
	ByHand []string `json:"byHand"`
	// Unread are files of the configuration that can not be read, so that what follows may be wrong.
	Unread []string `json:"unread"`
	// Overridden are planned values that something else overrides.
	Overridden []string `json:"overridden"`
	// LinesGo and LinesStay are lines of the log that the configuration removes, and those that it does not.
	LinesGo   []eviction.Line `json:"linesGo"`
	LinesStay []eviction.Line `json:"linesStay"`
	// Filter is about the filter of the journal; "" if there is nothing to filter.
	Filter string `json:"filter"`
	// Remaining are findings that stay with the configuration.
	Remaining []eviction.Finding `json:"remaining"`
	// Next are commands that put what was written into force.
	Next    []string `json:"next"`
	Written bool     `json:"written"` // files were changed

	reason string // why there is nothing to plan
}

func runKubeletConfig(ctx context.Context, opts kubeletConfigOptions, out io.Writer) error {
	r, err := opts.plan(ctx)
	if err != nil {
		return err
	}
	if opts.print {
		return printKubeletFile(r, out)
	}
	var failed error
	if r.Refused == "" && opts.write && !opts.dryRun {
		if failed = writeSetupFiles(opts.root, r.Files, kubeletModeOf, true); failed == nil {
			r.Written = anyChange(r.Files)
		}
	}
	if opts.output == outputJSON {
		err = json.NewEncoder(out).Encode(r)
	} else {
		_, err = io.WriteString(out, opts.page(r))
	}
	switch {
	case err != nil:
		return fmt.Errorf("print the configuration: %w", err)
	case failed != nil:
		return failed
	case r.Refused != "" && (opts.write || r.Plan == nil && !opts.undo):
		return withExit(exitRefused, errors.New(r.Refused))
	}
	return nil
}

// printKubeletFile prints the planned file alone.
func printKubeletFile(r *kubeletConfigReport, out io.Writer) error {
	if r.Plan == nil {
		return withExit(exitRefused, errors.New(firstText(r.Refused, r.reason)))
	}
	if _, err := io.WriteString(out, r.Plan.KubeletConfiguration()); err != nil {
		return fmt.Errorf("print the file: %w", err)
	}
	return nil
}
