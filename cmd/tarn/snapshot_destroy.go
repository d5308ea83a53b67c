package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// snapshotDestroyOptions are the settings of tarn snapshot destroy.
type snapshotDestroyOptions struct {
	sourceOptions
	dryRun bool
}

func newSnapshotDestroyCommand(p process) *cobra.Command {
	opts := snapshotDestroyOptions{sourceOptions: defaultSourceOptions()}
	cmd := &cobra.Command{
		Use:   "destroy NAME...",
		Short: "Destroy snapshots",
		Long: `Destroy snapshots for good. Only those that tarn made can be named, by name or
label. One that is held, in use, or the origin of a clone is kept; the others that
are named are destroyed all the same.

A copy whose snapshot.json is damaged can be destroyed by its name only, not as
"newest"; whether it was held can not be told any more.

Exit codes: 0 destroyed, 1 failed, 2 the command line is not valid, or a label is
not that of one snapshot alone, 3 there is no such snapshot, 4 at least one is kept.
With 2 and 3 nothing was done.`,
		Args: atLeastOneArg,
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	boolFlag(fs, &opts.dryRun, "dry-run", "print what would be destroyed, and destroy nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		return runSnapshotDestroy(cmd.Context(), opts, args, p)
	}
	return cmd
}

func runSnapshotDestroy(ctx context.Context, opts snapshotDestroyOptions, args []string, p process) error {
	from, snaps, err := opts.listedSnapshots(ctx)
	if err != nil {
		return err
	}
	found, err := findSnapshots(from, snaps, args)
	if err != nil {
		return err
	}
	for _, s := range found {
		if s.Problem != "" && !slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, s.Name) }) {
			return fmt.Errorf("destroy the newest snapshot: %s seems to be it, but its description is damaged: %s; give its name to destroy it", s.Name, s.Problem)
		}
	}
	var errs []error
	for _, s := range found {
		if opts.dryRun {
			if err := s.KeptByUse(from.Source()); err != nil {
				errs = append(errs, withSnapshotExit(err))
			} else {
				fmt.Fprintln(p.stdout, "would destroy", s.Name)
			}
			continue
		}
		if err := from.Destroy(ctx, s.Name); err != nil {
			errs = append(errs, withSnapshotExit(err))
			continue
		}
		fmt.Fprintln(p.stdout, "destroyed", s.Name)
	}
	return errors.Join(errs...)
}
