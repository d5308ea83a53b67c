package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// backupForgetOptions are the settings of tarn backup forget.
type backupForgetOptions struct {
	sourceOptions
	target string
}

func newBackupForgetCommand(p process) *cobra.Command {
	opts := backupForgetOptions{sourceOptions: defaultSourceOptions()}
	cmd := &cobra.Command{
		Use:   "forget TARGET",
		Short: "Stop keeping things here for a target that is no more",
		Long: `Take away what the dataset keeps for a target: the hold on the newest snapshot there,
its bookmark, and the record that tarn backup list shows. What is at the target is not
touched. A later push to it still works if the dataset has a snapshot that is there.

` + targetHelp + `

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 done, 1 failed, 2 the command line is not valid, 3 the dataset was never
pushed to that target, 7 the data directory is not on ZFS.`,
		Args: exactArgs(1),
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		opts.target = args[0]
		return runBackupForget(cmd.Context(), opts, p)
	}
	return cmd
}

func runBackupForget(ctx context.Context, opts backupForgetOptions, p process) error {
	target, err := targetArg(opts.target)
	if err != nil {
		return err
	}
	source, err := opts.pushedDataset(ctx)
	if err != nil {
		return err
	}
	if err := zfs.Forget(ctx, source, target); err != nil {
		return withBackupExit(err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s keeps nothing for %s any more\n", source, target)
	return err
}
