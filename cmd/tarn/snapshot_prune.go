package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// snapshotPruneOptions are the settings of tarn snapshot prune.
type snapshotPruneOptions struct {
	sourceOptions
	rulesOptions
	dryRun bool
	output outputFormat
}

func newSnapshotPruneCommand(p process) *cobra.Command {
	opts := snapshotPruneOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Destroy the snapshots that no rule keeps",
		Long: `Destroy the snapshots of tarn that no rule keeps, one by one, the oldest first.
Snapshots of others are never touched. One that is in use by then is kept, and the
reason is printed.

` + ruleHelp + `

Each flag can be an environment variable, such as TARN_KEEP_DAILY for --keep-daily.

Exit codes: 0 done, 1 failed, 2 the command line is not valid, 3 there is no such
data directory.`,
		Args: exactArgs(0),
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	opts.rulesOptions.register(fs)
	boolFlag(fs, &opts.dryRun, "dry-run", "print what would be destroyed, and destroy nothing")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		return runSnapshotPrune(cmd.Context(), opts, time.Now(), p)
	}
	return cmd
}

// pruneReport is what tarn snapshot prune prints; the JSON names are stable.
type pruneReport struct {
	Source    string         `json:"source"`
	DryRun    bool           `json:"dryRun"`
	Destroyed []string       `json:"destroyed"` // or to be destroyed, with DryRun
	Kept      []keptSnapshot `json:"kept"`
}

// keptSnapshot is one that stays, and why.
type keptSnapshot struct {
	Name    string   `json:"name"`
	Reasons []string `json:"reasons"`
}

func runSnapshotPrune(ctx context.Context, opts snapshotPruneOptions, now time.Time, p process) error {
	from, snaps, err := opts.listedSnapshots(ctx)
	if err != nil {
		return err
	}
	if note := zfs.ClockNote(now, snaps); note != "" {
		fmt.Fprintf(p.stderr, "tarn: %s\n", note)
	}
	r := pruneReport{Source: from.Source(), DryRun: opts.dryRun, Destroyed: []string{}, Kept: []keptSnapshot{}}
	failed := r.prune(ctx, from, opts.rules().Apply(now, snaps))
	// What was done before a failure is told, too.
	if opts.output == outputJSON {
		err = json.NewEncoder(p.stdout).Encode(r)
	} else {
		_, err = io.WriteString(p.stdout, r.page())
	}
	return errors.Join(failed, err)
}

func (r *pruneReport) prune(ctx context.Context, from zfs.Snapshots, decisions []zfs.Decision) error {
	for _, d := range decisions {
		name := d.Snapshot.Name
		if d.Keep {
			r.Kept = append(r.Kept, keptSnapshot{name, d.Reasons})
			continue
		}
		var err error
		if !r.DryRun {
			err = from.Destroy(ctx, name)
		}
		switch {
		case errors.Is(err, zfs.ErrBusy), errors.Is(err, zfs.ErrHasClones):
			r.Kept = append(r.Kept, keptSnapshot{name, []string{err.Error()}})
		case errors.Is(err, zfs.ErrNotFound): // somebody else was faster
		case err != nil:
			return fmt.Errorf("prune: %d destroyed, then: %w", len(r.Destroyed), err)
		default:
			r.Destroyed = append(r.Destroyed, name)
		}
	}
	return nil
}

func (r *pruneReport) page() string {
	var b strings.Builder
	verb := "destroyed"
	if r.DryRun {
		verb = "would destroy"
	}
	for _, name := range r.Destroyed {
		fmt.Fprintf(&b, "%s %s\n", verb, name)
	}
	for _, k := range r.Kept {
		fmt.Fprintf(&b, "kept %s: %s\n", k.Name, strings.Join(k.Reasons, "; "))
	}
	fmt.Fprintf(&b, "%s: %s %d, kept %d\n", r.Source, verb, len(r.Destroyed), len(r.Kept))
	return b.String()
}
