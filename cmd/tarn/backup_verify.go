package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs"
)

// backupVerifyOptions are the settings of tarn backup verify.
type backupVerifyOptions struct {
	sourceOptions
	target string
	deep   bool
	output outputFormat
}

func newBackupVerifyCommand(p process) *cobra.Command {
	opts := backupVerifyOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "verify TARGET",
		Short: "Check what is at a target",
		Long: `Check what is at a target, and change nothing.

Of a directory every stream file is read and compared with its checksum, and each must
begin where the one before ends. With --deep, zstream (it comes with ZFS) checks the
checksums within the streams as well.

A dataset is compared with the one here: the same snapshots, how far it is behind, and
whether a push could go on there.
ZFS itself has checksums of all data there: --deep makes it read all of the newest
snapshot, and zpool scrub all of the pool.

Whether a store is whole is what tarn snapshot verify tells, on the machine with the
dataset; get a directory into one with tarn backup pull.

` + targetHelp + `

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 good, 1 it could not be checked, 2 the command line is not valid, 3 there
is no such backup, 6 the backup is damaged, or has another history than the dataset here.`,
		Args: exactArgs(1),
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	boolFlag(fs, &opts.deep, "deep", "check what is within streams, or read all data of the newest snapshot")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		opts.target = args[0]
		return runBackupVerify(cmd.Context(), opts, p)
	}
	return cmd
}

// backupVerdict is what tarn backup verify prints; the JSON names are stable.
type backupVerdict struct {
	Target string `json:"target"`
	OK     bool   `json:"ok"`
	zfs.BackupReport
}

func runBackupVerify(ctx context.Context, opts backupVerifyOptions, p process) error {
	target, err := targetArg(opts.target)
	if err != nil {
		return err
	}
	source, err := opts.comparedDataset(ctx)
	if err != nil {
		return err
	}
	line := newProgressLine(p.stderr)
	report, err := zfs.VerifyBackup(ctx, target, source, zfs.VerifyOptions{Deep: opts.deep, Progress: showTransfer(line)})
	line.clear()
	if err = orInterrupted(ctx, err); err != nil {
		return withBackupExit(err)
	}
	v := backupVerdict{Target: target.String(), OK: len(report.Findings) == 0, BackupReport: report}
	if opts.output == outputJSON {
		err = json.NewEncoder(p.stdout).Encode(v)
	} else {
		_, err = io.WriteString(p.stdout, v.page())
	}
	if err == nil && !v.OK {
		return &exitError{code: exitBackupDamaged, err: fmt.Errorf("%s is damaged", target), told: true}
	}
	return err
}

func (v *backupVerdict) page() string {
	var b strings.Builder
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "DAMAGED: %s\n", f)
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "NOTE: %s\n", n)
	}
	if v.OK {
		fmt.Fprintf(&b, "OK: %s, %d snapshot(s)\n", v.Target, v.Snapshots)
	}
	if v.Newest != "" {
		fmt.Fprintf(&b, "newest    %s\n", v.Newest)
	} else {
		b.WriteString("newest    none can be restored\n")
	}
	return b.String()
}
