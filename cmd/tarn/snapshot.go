package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs"
)

func newSnapshotCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Make, list and remove snapshots of the data",
		Long: `Make, list and remove snapshots of the data directory. The server need not be
stopped.

On ZFS they are snapshots of the dataset that the data directory is on. On other
file systems they are copies of the files, in a directory beside the data directory
with -snapshots after its name; the commands are the same.

Only snapshots that tarn made are seen and touched: those with a name such as
tarn-20060102T150405Z-r123 (time in UTC, revision) that carry the property
tarn-kv:revision. Where a command wants the NAME of a snapshot, its label will do,
if only one has it, and so will "newest".

Exit codes: 0 done, 1 failed, 2 the command line is not valid, or several snapshots
have the label that was given, 3 there is no such snapshot or data directory, 4 the
snapshot is kept: held, in use, or the origin of a clone.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSnapshotCreateCommand(p), newSnapshotListCommand(p), newSnapshotShowCommand(p), newSnapshotPruneCommand(p),
		newSnapshotHoldCommand(p), newSnapshotReleaseCommand(p), newSnapshotDestroyCommand(p),
		newSnapshotVerifyCommand(p), newSnapshotDiffCommand(p))
	return cmd
}

// snapshotFlags prepares the flags of a command of tarn snapshot.
func snapshotFlags(cmd *cobra.Command, o *sourceOptions) *pflag.FlagSet {
	fs := cmd.Flags()
	fs.SortFlags = false
	o.register(fs)
	return fs
}

// atLeastOneArg refuses a command line that names no snapshot.
func atLeastOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return withExit(exitUsage, fmt.Errorf("no NAME is given; usage: %s", cmd.UseLine()))
}

// listedSnapshots opens the source and lists its snapshots.
func (o *sourceOptions) listedSnapshots(ctx context.Context) (zfs.Snapshots, []zfs.Snapshot, error) {
	from, err := o.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	snaps, err := from.List(ctx)
	if copies, ok := from.(*zfs.Copies); ok && err == nil && len(snaps) == 0 {
		if _, missing := os.Stat(copies.Dir()); errors.Is(missing, fs.ErrNotExist) {
			err = withExit(exitNoSnapshot, fmt.Errorf("the data directory %s does not exist, and there are no snapshots of it; see whether --data-dir is the right one", copies.Dir()))
		}
	}
	return from, snaps, err
}

// findSnapshots finds each snapshot that args name, each once. All must be there.
func findSnapshots(from zfs.Snapshots, snaps []zfs.Snapshot, args []string) ([]zfs.Snapshot, error) {
	var found []zfs.Snapshot
	seen := map[string]bool{}
	for _, arg := range args {
		s, err := findSnapshot(from, snaps, arg)
		if err != nil {
			return nil, err
		}
		if !seen[s.Name] {
			found = append(found, s)
		}
		seen[s.Name] = true
	}
	return found, nil
}

// roughAge is how long ago something was, in the largest unit that fits twice.
func roughAge(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < -time.Minute:
		return "in the future"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d/day))
}

// revisionText is a snapshot's revision for a person.
func revisionText(revision int64) string {
	if revision == 0 {
		return "unknown"
	}
	return fmt.Sprint(revision)
}

func verifiedText(s zfs.Snapshot) string {
	if s.Problem != "" {
		return "DAMAGED"
	}
	if s.Verified == nil {
		return "no"
	}
	return "yes, " + s.Verified.Time.Format("2006-01-02")
}

func keptText(d zfs.Decision) string {
	if !d.Keep {
		return "no rule: goes with the next prune"
	}
	return strings.Join(d.Reasons, "; ")
}
