package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// targetHelp explains TARGET, the same in each command.
const targetHelp = `TARGET is one of
  POOL/DATASET                        a dataset of this machine, best in another pool
  ssh://[USER@]HOST[:PORT]/POOL/DATASET  a dataset of another machine. ssh must get in
                                      without a password, and zfs be installed there
  dir:PATH, or an absolute PATH       a directory with one stream file for each
                                      snapshot, as zfs send writes it`

func newBackupCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Keep copies of the snapshots elsewhere",
		Long: `Send the snapshots that tarn snapshot create made to another pool, another machine
or a directory, look at them there, and get them back. Only what is new is sent.

` + targetHelp + `

A target is only added to: nothing at it is ever rolled back, overwritten or destroyed.

Exit codes: 0 done, 1 failed, 2 the command line is not valid, 3 there is no such
backup or snapshot, 4 the target is not fit for it and a person must decide, 5 it
broke off midway, or another is under way: it goes on when it is run again, 6 the backup is damaged, 7 the data
directory is not on ZFS.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBackupPushCommand(p), newBackupPullCommand(p), newBackupListCommand(p), newBackupVerifyCommand(p),
		newBackupForgetCommand(p))
	return cmd
}

// targetArg reads TARGET.
func targetArg(arg string) (zfs.Target, error) {
	t, err := zfs.ParseTarget(arg)
	return t, withExit(exitUsage, err)
}

// pushedDataset is the dataset to push. On other file systems there is none, and
// the error says what to do there.
func (o *sourceOptions) pushedDataset(ctx context.Context) (string, error) {
	if err := o.canBeDir(); err != nil {
		return "", err
	}
	if !o.copies {
		d, err := o.openDataset(ctx)
		if err != nil {
			return "", err
		}
		if d != nil {
			return d.Name(), nil
		}
	}
	c, err := zfs.NewCopies(o.dataDir)
	if err != nil {
		return "", err
	}
	return "", withExit(exitBackupNoZFS, fmt.Errorf("the data directory %s is not on ZFS (--dataset names a dataset elsewhere), so its snapshots are directories in %s; "+
		"each is complete and never changes: copy them with rsync -a, or any backup program", o.dataDir, c.Root()))
}

// comparedDataset is the dataset that a backup is compared with, or "" if there
// is none here any more: then the backup is looked at by itself.
func (o *sourceOptions) comparedDataset(ctx context.Context) (string, error) {
	if o.copies {
		return "", nil
	}
	d, err := o.openDataset(ctx)
	switch {
	case errors.Is(err, zfs.ErrNotFound), errors.Is(err, zfs.ErrNoZFS):
		return "", nil
	case err != nil, d == nil:
		return "", err
	}
	return d.Name(), nil
}

// withBackupExit gives an error of a backup its exit code.
func withBackupExit(err error) error {
	switch {
	case errors.Is(err, zfs.ErrDamaged):
		return withExit(exitBackupDamaged, err)
	case errors.Is(err, zfs.ErrDiverged), errors.Is(err, zfs.ErrTargetInUse), errors.Is(err, zfs.ErrMixed), errors.Is(err, zfs.ErrInterrupted):
		return withExit(exitBackupRefused, err)
	case errors.Is(err, zfs.ErrUnderWay):
		return withExit(exitBackupInterrupted, err)
	case errors.Is(err, zfs.ErrNoBackup), errors.Is(err, zfs.ErrNotFound), errors.Is(err, zfs.ErrNothingToSend):
		return withExit(exitNoSnapshot, err)
	}
	return err
}

// orInterrupted is what to say when a person or the service manager has ended the command.
func orInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; run it again, it goes on where it was")
	}
	return err
}

// transferOptions connect a transfer with the terminal. The line is to be cleared
// when the transfer has ended.
func transferOptions(stderr io.Writer) (zfs.TransferOptions, *progressLine) {
	line := newProgressLine(stderr)
	return zfs.TransferOptions{
		Progress: showTransfer(line),
		Note: func(text string) {
			line.clear()
			fmt.Fprintf(stderr, "tarn: %s\n", text)
		},
	}, line
}

func showTransfer(line *progressLine) func(zfs.Progress) {
	return func(p zfs.Progress) {
		step := fmt.Sprintf("%s (%d of %d)", p.Snapshot, p.Step, p.Steps)
		// The estimate leaves out what is around the data.
		line.show(step, min(p.SentBytes, p.SizeBytes), p.SizeBytes)
	}
}
