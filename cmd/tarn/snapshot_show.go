package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

func newSnapshotShowCommand(p process) *cobra.Command {
	opts := snapshotListOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show all that is known of one snapshot",
		Long: `Show all that is known of one snapshot. NAME is its name or label, or newest.

` + ruleHelp + `

Exit codes: 0 shown, 1 failed, 2 the command line is not valid, or the label is not
that of one snapshot alone, 3 there is no such snapshot.`,
		Args: exactArgs(1),
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	opts.rulesOptions.register(fs)
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		return runSnapshotShow(cmd.Context(), opts, args[0], time.Now(), p)
	}
	return cmd
}

func runSnapshotShow(ctx context.Context, opts snapshotListOptions, name string, now time.Time, p process) error {
	from, snaps, err := opts.listedSnapshots(ctx)
	if err != nil {
		return err
	}
	s, err := findSnapshot(from, snaps, name)
	if err != nil {
		return err
	}
	for _, d := range opts.rules().Apply(now, snaps) {
		if d.Snapshot.Name != s.Name {
			continue
		}
		if opts.output == outputJSON {
			return json.NewEncoder(p.stdout).Encode(newListedSnapshot(d, now))
		}
		_, err = io.WriteString(p.stdout, showPage(from.Source(), d, now))
	}
	return err
}

func showPage(source string, d zfs.Decision, now time.Time) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, value)
		}
	}
	s := d.Snapshot
	line("name", s.Name)
	line("of", source)
	line("label", s.Label)
	line("DAMAGED", s.Problem)
	line("made", fmt.Sprintf("%s, age %s", s.Created.Format(time.RFC3339), roughAge(now.Sub(s.Created))))
	line("revision", revisionText(s.Revision))
	line("store", s.StoreID)
	line("version", s.Version)
	if v := s.Verified; s.Problem != "" {
		line("verified", "no; tarn restore with its path may still read its files")
	} else if v == nil {
		line("verified", "never; tarn snapshot verify "+s.Name+" does it")
	} else {
		line("verified", fmt.Sprintf("%s: revision %d, %s", v.Time.Format(time.RFC3339), v.Revision, hashText(v.Hash)))
	}
	line("size", roughBytes(s.SizeBytes))
	line("unique", roughBytes(s.UniqueBytes))
	line("holds", strings.Join(s.Holds, ", "))
	line("clones", strings.Join(s.Clones, ", "))
	line("guid", s.GUID)
	line("kept", keptText(d))
	return b.String()
}
