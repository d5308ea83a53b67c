package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// snapshotListOptions are the settings of tarn snapshot list and show.
type snapshotListOptions struct {
	sourceOptions
	rulesOptions
	output outputFormat
}

func newSnapshotListCommand(p process) *cobra.Command {
	opts := snapshotListOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the snapshots",
		Long: `List the snapshots that tarn made, the oldest first. REVISION was acknowledged
before the snapshot was made, so the snapshot has it and can have later ones. SIZE is
all that it refers to, UNIQUE what would be free without it (for file copies: what it
takes, with what it shares). KEPT BECAUSE is what tarn snapshot prune, with the same
rules, would say.

` + ruleHelp + `

Each flag can be an environment variable, such as TARN_KEEP_DAILY for --keep-daily.

A copy whose snapshot.json is damaged is listed as DAMAGED; tarn snapshot show says
what is wrong.

Exit codes: 0 listed, also if there are none, 1 failed, 2 the command line is not
valid, 3 there is no such data directory.`,
		Args: exactArgs(0),
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	opts.rulesOptions.register(fs)
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		return runSnapshotList(cmd.Context(), opts, time.Now(), p)
	}
	return cmd
}

// listedSnapshot is a snapshot as list and show print it; the JSON names are stable.
type listedSnapshot struct {
	zfs.Snapshot
	AgeSeconds  int64    `json:"ageSeconds"`
	Keep        bool     `json:"keep"`
	KeptBecause []string `json:"keptBecause"`
}

// snapshotList is what tarn snapshot list prints; the JSON names are stable.
type snapshotList struct {
	Source    string           `json:"source"` // the dataset or the data directory
	Snapshots []listedSnapshot `json:"snapshots"`
}

func newListedSnapshot(d zfs.Decision, now time.Time) listedSnapshot {
	return listedSnapshot{Snapshot: d.Snapshot, AgeSeconds: int64(now.Sub(d.Snapshot.Created).Seconds()),
		Keep: d.Keep, KeptBecause: append([]string{}, d.Reasons...)}
}

func runSnapshotList(ctx context.Context, opts snapshotListOptions, now time.Time, p process) error {
	from, snaps, err := opts.listedSnapshots(ctx)
	if err != nil {
		return err
	}
	decisions := opts.rules().Apply(now, snaps)
	if opts.output == outputJSON {
		list := snapshotList{Source: from.Source(), Snapshots: []listedSnapshot{}}
		for _, d := range decisions {
			list.Snapshots = append(list.Snapshots, newListedSnapshot(d, now))
		}
		return json.NewEncoder(p.stdout).Encode(list)
	}
	if len(decisions) == 0 {
		_, err = fmt.Fprintf(p.stdout, "%s has no snapshots of tarn\n", from.Source())
		return err
	}
	_, err = io.WriteString(p.stdout, listPage(decisions, now))
	return err
}

func listPage(decisions []zfs.Decision, now time.Time) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tAGE\tREVISION\tSIZE\tUNIQUE\tVERIFIED\tKEPT BECAUSE")
	for _, d := range decisions {
		s := d.Snapshot
		name := s.Name
		if s.Label != "" {
			name += " (" + s.Label + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, roughAge(now.Sub(s.Created)), revisionText(s.Revision),
			roughBytes(s.SizeBytes), roughBytes(s.UniqueBytes), verifiedText(s), keptText(d))
	}
	w.Flush()
	return b.String()
}
