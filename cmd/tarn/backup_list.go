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

// backupListOptions are the settings of tarn backup list.
type backupListOptions struct {
	sourceOptions
	target string // "": the targets
	output outputFormat
}

func newBackupListCommand(p process) *cobra.Command {
	opts := backupListOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "list [TARGET]",
		Short: "List the snapshots at a target, or the targets",
		Long: `List the snapshots of tarn at a target, the oldest first, and whether the dataset
here has them too. Without TARGET, list the targets that the dataset was pushed to,
and when the last push to each went well.

` + targetHelp + `

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 listed, 1 failed, 2 the command line is not valid, 3 there is no such
backup, 6 the backup is damaged, 7 without TARGET: the data directory is not on ZFS.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return withExit(exitUsage, fmt.Errorf("arguments: %d given, at most 1 expected; usage: %s", len(args), cmd.UseLine()))
			}
			return nil
		},
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		if len(args) == 0 {
			return runBackupTargets(cmd.Context(), opts, time.Now(), p)
		}
		opts.target = args[0]
		return runBackupList(cmd.Context(), opts, time.Now(), p)
	}
	return cmd
}

func runBackupList(ctx context.Context, opts backupListOptions, now time.Time, p process) error {
	target, err := targetArg(opts.target)
	if err != nil {
		return err
	}
	source, err := opts.comparedDataset(ctx)
	if err != nil {
		return err
	}
	b, err := zfs.ListBackup(ctx, target, source)
	if err != nil {
		return withBackupExit(err)
	}
	if opts.output == outputJSON {
		return json.NewEncoder(p.stdout).Encode(b)
	}
	_, err = io.WriteString(p.stdout, backupPage(b, now))
	return err
}

func backupPage(b zfs.Backup, now time.Time) string {
	var out strings.Builder
	if len(b.Snapshots) == 0 {
		fmt.Fprintf(&out, "%s has no snapshots of tarn\n", b.Target)
	} else {
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tAGE\tREVISION\tSIZE\tHERE TOO")
		for _, s := range b.Snapshots {
			name, here := s.Name, "-"
			if s.Label != "" {
				name += " (" + s.Label + ")"
			}
			if s.AtSource != nil {
				here = map[bool]string{true: "yes", false: "no"}[*s.AtSource]
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, roughAge(now.Sub(s.Created)), revisionText(s.Revision), roughBytes(s.SizeBytes), here)
		}
		w.Flush()
	}
	if b.Interrupted {
		out.WriteString("a transfer was interrupted; the next push goes on with it\n")
	}
	if len(b.Foreign) > 0 {
		fmt.Fprintf(&out, "%d snapshot(s) there are not of tarn\n", len(b.Foreign))
	}
	return out.String()
}

// runBackupTargets lists the targets.
func runBackupTargets(ctx context.Context, opts backupListOptions, now time.Time, p process) error {
	source, err := opts.pushedDataset(ctx)
	if err != nil {
		return err
	}
	records, err := zfs.PushRecords(ctx, source)
	if err != nil {
		return withBackupExit(err)
	}
	if opts.output == outputJSON {
		return json.NewEncoder(p.stdout).Encode(records)
	}
	if len(records) == 0 {
		_, err = fmt.Fprintf(p.stdout, "%s was never pushed anywhere; tarn backup push does it\n", source)
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tLAST PUSH\tNEWEST SNAPSHOT THERE")
	for _, r := range records {
		fmt.Fprintf(w, "%s\t%s ago\t%s\n", r.Target, roughAge(now.Sub(r.Time)), r.Snapshot)
	}
	return w.Flush()
}
