package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// restoreOptions are the settings of tarn restore.
type restoreOptions struct {
	sourceOptions
	arg        string // NAME
	backup     string // dataset that has the snapshot, "" for the data directory's own
	toDir      string
	inPlace    bool // what happens without toDir, said aloud
	resume     bool
	bump       int // of the revision; -1 for the default
	otherStore bool
	noSnapshot bool
	dryRun     bool
	output     outputFormat
	key        keyOptions
}

func newRestoreCommand(p process) *cobra.Command {
	opts := restoreOptions{sourceOptions: defaultSourceOptions(), bump: -1, output: outputText, key: defaultKeyOptions()}
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Go back to a snapshot, or get single keys out of one",
		Long: `Put the state of a snapshot in the place of the present one. NAME is a name or a
label that tarn snapshot list shows, or "newest", which leaves out those that a
restore made of the state before it. With a slash in it, it is the path
of a directory that holds a store: a snapshot of another tool, a clone, a copy. With
--from the snapshot is one that tarn backup has brought into another dataset.

The server must be stopped. The snapshot is checked as a whole, then copied beside
the present state, completed, checked again, and only then exchanged with it. The
present state is kept in the data directory, as before-restore-TIME, until you remove
it; on ZFS a snapshot of it is made and held as well, if the rights are there. A
mounted dataset is never rolled back, and no snapshot is lost. What root makes
belongs to the owner of the data directory; if that was missing, of the snapshot.
A missing directory is made only if a flag, a variable or the configuration file names
it. A restore that fails takes the snapshot that it made away again.

The revision moves on, above all that was ever handed out, and what is below counts
as compacted: clients that watch are told so and list again. Nothing that happened
after the snapshot comes back as a ghost. If the present state is lost or can not be
read, the clock must be right: the revision then moves by 1000000000, and 100000 for
each second since 2026.

With --to-dir the state goes to a new directory outside the data directory and its
snapshots, and a server may be running. With
--bump-revision 0 it then keeps its revision and history, to be looked at.

With --key the snapshot is only read: the key, or all keys that begin with it if it
ends with / or with --prefix, are printed, or put back into the running server with
--put. ` + keyHelp + `

An error or a crash leaves the present state as it was, or, in the moment of the
exchange, one with which no server starts until "tarn restore --continue" has ended it.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 done (with --dry-run: can be done), 1 failed, 2 the command line is not
valid, 3 there is no such snapshot or no such key, 4 the directory, or the one to
restore from, is in use,
5 the snapshot is damaged or holds no store, 6 the directory holds another store, is
not empty, or is within the data directory or its snapshots, or with --put the server is not the one that has the data directory, 7 an earlier restore must be ended with --continue, 8 with --put: keys
exist already, and nothing was written.`,
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	fs.Var(stringValue(&opts.backup, "dataset", "a ZFS dataset such as tank/backups/tarn"), "from", "take the snapshot from this dataset, which tarn backup has received")
	fs.Var(stringValue(&opts.toDir, "dir", "the path of a new or empty directory"), "to-dir", "make the state there, and leave the data directory alone")
	boolFlag(fs, &opts.inPlace, "in-place", "make the state in the data directory, as without --to-dir")
	fs.Var(intValue(&opts.bump, 0, 1<<40), "bump-revision", "how far to move the revision above the newest one that is known (default 1000000; if the present state can not be read, 1000000000 and 100000 for each second since 2026)")
	boolFlag(fs, &opts.otherStore, "other-store", "replace the present state even if it is another store's than the snapshot; with --put, write into the server even if it is another than the one that has the data directory")
	boolFlag(fs, &opts.noSnapshot, "no-safety-snapshot", "make no snapshot of the present state before (it is kept aside in any case)")
	boolFlag(fs, &opts.resume, "continue", "end a restore that was cut off")
	boolFlag(fs, &opts.dryRun, "dry-run", "check all and change nothing")
	opts.key.register(fs)
	addOutputFlag(fs, &opts.output)
	fs.Lookup("bump-revision").DefValue = ""
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if opts.resume {
			return exactArgs(0)(cmd, args)
		}
		return exactArgs(1)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts.endpoint = &opts.key.server
		if err := opts.resolve(fs, keyEnviron(p.environ)); err != nil {
			return err
		}
		if err := opts.valid(); err != nil {
			return withExit(exitUsage, err)
		}
		if opts.resume {
			return runRestoreContinue(cmd.Context(), opts, p)
		}
		opts.arg = args[0]
		if opts.key.key != "" {
			return runRestoreKey(cmd.Context(), opts, p)
		}
		return runRestore(cmd.Context(), opts, p)
	}
	return cmd
}

// valid refuses flags that do not go together.
func (o *restoreOptions) valid() error {
	switch {
	case o.key.key == "" && (o.key.put || o.key.overwrite || o.key.raw || o.key.prefix):
		return errors.New("--put, --overwrite, --raw and --prefix belong to --key")
	case o.inPlace && o.toDir != "":
		return errors.New("--in-place and --to-dir exclude each other")
	case o.key.key != "" && (o.inPlace || o.toDir != "" || o.resume || o.bump >= 0 || o.otherStore && !o.key.put):
		return errors.New("with --key nothing is restored but keys: leave out --in-place, --to-dir, --continue, --bump-revision and --other-store")
	case o.key.overwrite && !o.key.put:
		return errors.New("--overwrite belongs to --put")
	case o.key.raw && o.key.allBelow():
		return errors.New("--raw prints the value of one key: leave out --prefix, and give a key that does not end with /")
	case o.key.raw && (o.key.put || o.output == outputJSON):
		return errors.New("--raw prints the bytes of one value: leave out --put and --output json")
	case o.bump == 0 && o.toDir == "":
		return errors.New("--bump-revision 0 is only for a copy to be looked at, with --to-dir: clients would take what the restored state writes for what they know already")
	case o.bump == 1:
		return errors.New("--bump-revision must be 0 or at least 2")
	case o.resume && o.toDir != "":
		return errors.New("with --continue, give the directory of the restore that was cut off with --data-dir")
	}
	return nil
}

// replacedDataset is the dataset of the state that a restore replaces, nil if it is on no ZFS.
func (o *restoreOptions) replacedDataset(ctx context.Context, source restoreSource) *zfs.Dataset {
	d, ok := source.from.(*zfs.Dataset)
	if ok && o.backup != "" || o.argIsDir() && !o.copies {
		live, err := o.openDataset(ctx)
		if err != nil {
			return nil // then there is no snapshot of it, and it is kept aside all the same
		}
		return live
	}
	return d
}

func runRestore(ctx context.Context, opts restoreOptions, p process) (err error) {
	dir, err := opts.targetDir(ctx)
	if err != nil {
		return err
	}
	source, err := opts.findSource(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.cleanup()) }()
	if err := opts.checkToDir(source); err != nil {
		return err
	}
	if err := opts.checkGivenDir(source); err != nil {
		return err
	}
	opts.sayWhatIsForeign(dir, p.stderr)
	line := newProgressLine(p.stderr)
	r := restoreVerdict{Snapshot: source.name, Dir: dir, DryRun: opts.dryRun}
	o := store.RestoreOptions{
		Dir: dir, Source: source.dir, Snapshot: source.name, Known: source.known, OtherStore: opts.otherStore, Compare: source.compare,
		Advance: int64(max(0, opts.bump)), DryRun: opts.dryRun, Progress: line.show, Time: time.Now(),
	}
	if opts.toDir == "" {
		o.KnownStore = source.knownStore
	}
	safety := safetySnapshot{warn: p.stderr}
	if opts.toDir != "" {
		o.Empty = true
		if opts.bump == 0 {
			o.Advance = -1
		}
	} else if safety.of = opts.replacedDataset(ctx, source); safety.of != nil && !opts.noSnapshot {
		o.Before = func(ctx context.Context, known store.RestoreReport) error {
			line.clear()
			safety.take(ctx, known, source.name)
			return ctx.Err()
		}
	}
	report, err := store.Restore(ctx, o)
	line.clear()
	if err != nil {
		if !report.Exchanged {
			safety.giveBack(ctx)
		}
		return opts.restoreError(ctx, dir, source.name, err)
	}
	r.SafetySnapshot = safety.name
	r.fill(report)
	return r.print(opts.output, p.stdout)
}

// restoreError gives an error of a restore its exit code.
func (o *restoreOptions) restoreError(ctx context.Context, dir, name string, err error) error {
	code := exitFailed
	switch {
	case errors.Is(err, store.ErrRestoring):
		code = exitRestoreUnfinished
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = errors.New("interrupted, nothing was changed")
	case errors.Is(err, store.ErrInUse):
		code = exitRestoreInUse
	case errors.Is(err, store.ErrSnapshot):
		code = exitRestoreSnapshot
	case errors.Is(err, store.ErrRestoreTarget):
		code = exitRestoreTarget
	default:
		err = withOwnerAdvice(err, dir)
	}
	return withExit(code, fmt.Errorf("restore %s: %w", name, err))
}

func runRestoreContinue(ctx context.Context, opts restoreOptions, p process) error {
	dir, err := opts.targetDir(ctx)
	if err != nil {
		return err
	}
	report, err := store.ResumeRestore(dir, nil)
	if errors.Is(err, os.ErrNotExist) {
		return withExit(exitNoSnapshot, fmt.Errorf("no restore was cut off in %s: there is nothing to continue", dir))
	}
	if err != nil {
		return opts.restoreError(ctx, dir, "--continue", err)
	}
	r := restoreVerdict{Dir: dir}
	r.fill(report)
	return r.print(opts.output, p.stdout)
}
