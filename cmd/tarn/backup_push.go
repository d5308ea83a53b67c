package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// backupPushOptions are the settings of tarn backup push.
type backupPushOptions struct {
	sourceOptions
	target              string
	abortResume, dryRun bool
	output              outputFormat
}

func newBackupPushCommand(p process) *cobra.Command {
	opts := backupPushOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "push TARGET",
		Short: "Send the snapshots that are not at the target yet",
		Long: `Send the snapshots of tarn that are not at the target yet, the oldest first and one
by one: all of the first, and of each other what has changed. The server need not be
stopped. Make a snapshot before, with tarn snapshot create.

` + targetHelp + `

A dataset that does not exist is made, in one that does: unmounted, read-only, and
mounted by nobody but you. It must stay unmounted. An encrypted dataset is sent as it
is on disk, without its key. A transfer that broke off goes on where it was; into a
directory, the snapshot that was under way is sent anew.

At the source a bookmark stays for the newest snapshot at each target, so that tarn
snapshot prune may destroy the snapshot, which is held as well until a newer one is
there. If the target has something that does not come from here, nothing is sent, and
the message says what is in the way. Nothing there is ever destroyed.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 all is there, 1 failed, 2 the command line is not valid, 3 there is
nothing to send or the pool is not there, 4 the target is not fit for it and a person
must decide, 5 it broke off midway, or another push is under way: it goes on when it is
run again, 6 the backup is damaged: begin a new directory, 7 the data directory is not
on ZFS.`,
		Args: exactArgs(1),
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	boolFlag(fs, &opts.abortResume, "abort-resume", "delete the part that a broken-off transfer has left at the target, which can not be continued")
	boolFlag(fs, &opts.dryRun, "dry-run", "print what would be sent, and send nothing")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		opts.target = args[0]
		return runBackupPush(cmd.Context(), opts, p)
	}
	return cmd
}

// transferVerdict is what push and pull print; the JSON names are stable.
type transferVerdict struct {
	From   string `json:"from"`
	To     string `json:"to"`
	DryRun bool   `json:"dryRun"`
	pull   bool
	zfs.TransferResult
	Problem string `json:"problem,omitempty"`
}

func runBackupPush(ctx context.Context, opts backupPushOptions, p process) error {
	target, err := targetArg(opts.target)
	if err != nil {
		return err
	}
	source, err := opts.pushedDataset(ctx)
	if err != nil {
		return err
	}
	transfer, line := transferOptions(p.stderr)
	transfer.AbortResume, transfer.DryRun = opts.abortResume, opts.dryRun
	result, err := zfs.Push(ctx, source, target, transfer)
	line.clear()
	err = orInterrupted(ctx, err)
	v := transferVerdict{From: source, To: target.String(), DryRun: opts.dryRun, TransferResult: result}
	return v.print(err, opts.output, p.stdout)
}

// print tells what was done, also if it ended with failed.
func (v *transferVerdict) print(failed error, format outputFormat, out io.Writer) (err error) {
	if failed != nil {
		v.Problem = failed.Error()
	}
	if format == outputJSON {
		err = json.NewEncoder(out).Encode(v)
	} else {
		_, err = io.WriteString(out, v.page())
	}
	again := v.Part != nil && v.Part.SizeBytes > 0 && !errors.Is(failed, zfs.ErrNoSpace) && !errors.Is(failed, zfs.ErrPermission)
	if failed = withBackupExit(failed); again {
		failed = withExit(exitBackupInterrupted, failed)
	}
	if failed == nil {
		return err
	}
	if err == nil {
		return failed
	}
	return errors.Join(failed, err)
}

func (v *transferVerdict) page() string {
	var b strings.Builder
	verb, would, unsent := "sent", "would send", "would be sent"
	if v.pull {
		verb, would, unsent = "received", "would receive", "would be received"
	}
	if v.DryRun {
		verb = would
	}
	for _, s := range v.Sent {
		how := "all of it"
		switch {
		case s.Resumed:
			how = "the rest of it"
		case s.From != "":
			how = "what changed since " + s.From
		}
		fmt.Fprintf(&b, "%s %s, %s, %s\n", verb, s.Snapshot, how, roughBytes(s.SizeBytes))
	}
	switch {
	case v.Problem != "":
	case v.DryRun && len(v.Sent) == 0:
		fmt.Fprintf(&b, "%s: all is there, nothing %s; the newest snapshot there is %s\n", v.To, unsent, v.Newest)
	case v.DryRun:
		fmt.Fprintf(&b, "%s: nothing was changed\n", v.To)
	default:
		fmt.Fprintf(&b, "%s: the newest snapshot there is %s\n", v.To, v.Newest)
	}
	return b.String()
}
