package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// snapshotHoldOptions are the settings of tarn snapshot hold and release.
type snapshotHoldOptions struct {
	sourceOptions
	tag string
}

func newSnapshotHoldCommand(p process) *cobra.Command {
	return holdCommand(p, "hold", "Keep snapshots from being destroyed", `Keep snapshots from being destroyed, by tarn and by zfs, until tarn snapshot release
takes the hold away. A snapshot can have several holds, told apart by their tags;
holding it twice with one tag is holding it once. NAME is a name or label, or newest.

Exit codes: 0 held, 1 failed, 2 the command line is not valid, or a label is not
that of one snapshot alone, 3 there is no such snapshot; with 2 and 3 nothing was done.`, "held", zfs.Snapshots.Hold)
}

func newSnapshotReleaseCommand(p process) *cobra.Command {
	return holdCommand(p, "release", "Take a hold away", `Take a hold away from snapshots. It is no error if they have none with that tag;
then it is said which holds they have. The tags that begin with tarn-push are those of tarn backup push: without them the next
transfer may have to begin anew. NAME is a name or label, or newest.

Exit codes: 0 released, 1 failed, 2 the command line is not valid, or a label is not
that of one snapshot alone, 3 there is no such snapshot; with 2 and 3 nothing was done.`, "released", zfs.Snapshots.Release)
}

func holdCommand(p process, verb, short, long, done string, do func(zfs.Snapshots, context.Context, string, string) error) *cobra.Command {
	opts := snapshotHoldOptions{sourceOptions: defaultSourceOptions(), tag: keepTag}
	cmd := &cobra.Command{Use: verb + " NAME...", Short: short, Long: long, Args: atLeastOneArg}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	fs.Var(tagValue(&opts.tag), "tag", "tag of the hold")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		from, snaps, err := opts.listedSnapshots(cmd.Context())
		if err != nil {
			return err
		}
		found, err := findSnapshots(from, snaps, args)
		if err != nil {
			return err
		}
		for _, s := range found {
			if verb == "release" && !slices.Contains(s.Holds, opts.tag) {
				fmt.Fprintf(p.stdout, "unchanged %s: it has no hold with the tag %s%s\n", s.Name, opts.tag, otherHolds(s))
				continue
			}
			if err := do(from, cmd.Context(), s.Name, opts.tag); err != nil {
				return withSnapshotExit(err)
			}
			fmt.Fprintf(p.stdout, "%s %s (%s)\n", done, s.Name, opts.tag)
		}
		return nil
	}
	return cmd
}

// otherHolds tells which holds a snapshot has, after a text about one that it has not.
func otherHolds(s zfs.Snapshot) string {
	if len(s.Holds) == 0 {
		return ""
	}
	return "; held with " + strings.Join(s.Holds, ", ")
}
