package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// backupPullOptions are the settings of tarn backup pull.
type backupPullOptions struct {
	target, to, snapshot string
	abortResume, dryRun  bool
	output               outputFormat
}

func newBackupPullCommand(p process) *cobra.Command {
	opts := backupPullOptions{output: outputText}
	cmd := &cobra.Command{
		Use:   "pull TARGET --to POOL/DATASET",
		Short: "Get snapshots back from a target, into a dataset of their own",
		Long: `Receive snapshots from a target into a dataset of this machine. The dataset is made
in one that exists: unmounted and read-only. If an earlier pull has made it, it gets
what is new. Data that is in use is never touched; use what was received with

  tarn restore newest --from POOL/DATASET --data-dir DIR   (the server stopped)
  tarn snapshot verify --newest --dataset POOL/DATASET

` + targetHelp + `

TARGET can just as well be the dataset of a running server: then this machine keeps
the backup, and that one needs no rights here. At the target nothing is changed. A
transfer that broke off goes on where it was; from a directory, the snapshot that was
under way is received anew. Stream files are checked before they are received.

Exit codes: 0 all is there, 1 failed, 2 the command line is not valid, 3 there is no
such backup or snapshot, 4 the dataset is not fit for it and a person must decide,
5 it broke off midway, or another is under way: it goes on when it is run again, 6 the backup is damaged.`,
		Args: exactArgs(1),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(stringValue(&opts.to, "dataset", "a ZFS dataset such as tank/tarn-restored"), "to", "the dataset to receive into (needed)")
	fs.Var(stringValue(&opts.snapshot, "name", "the name of a snapshot"), "snapshot", "the last snapshot to receive (default: the newest)")
	boolFlag(fs, &opts.abortResume, "abort-resume", "delete the part that a broken-off transfer has left in the dataset, which can not be continued")
	boolFlag(fs, &opts.dryRun, "dry-run", "print what would be received, and receive nothing")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts.target = args[0]
		return runBackupPull(cmd.Context(), opts, p)
	}
	return cmd
}

func runBackupPull(ctx context.Context, opts backupPullOptions, p process) error {
	target, err := targetArg(opts.target)
	if err != nil {
		return err
	}
	if opts.to == "" {
		return withExit(exitUsage, errors.New("--to is needed: a dataset that is to be made, such as tank/tarn-restored"))
	}
	name := opts.snapshot
	if name == zfs.Newest {
		name = ""
	}
	transfer, line := transferOptions(p.stderr)
	transfer.AbortResume, transfer.DryRun = opts.abortResume, opts.dryRun
	result, err := zfs.Pull(ctx, target, name, opts.to, transfer)
	line.clear()
	err = orInterrupted(ctx, err)
	v := transferVerdict{From: target.String(), To: opts.to, DryRun: opts.dryRun, pull: true, TransferResult: result}
	if err = v.print(err, opts.output, p.stdout); err == nil && !opts.dryRun && opts.output == outputText {
		_, err = fmt.Fprintf(p.stdout, "restore it with: tarn restore newest --from %s --data-dir DIR\n", opts.to)
	}
	return err
}
