package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
)

// keepTag is the hold that a person sets, as opposed to one that a backup has.
const keepTag = "keep"

// snapshotCreateOptions are the settings of tarn snapshot create.
type snapshotCreateOptions struct {
	sourceOptions
	server clientOptions
	label  string
	hold   bool
	output outputFormat
	usage  func(dir string) (vfs.Usage, error) // of a file system
}

func newSnapshotCreateCommand(p process) *cobra.Command {
	opts := snapshotCreateOptions{sourceOptions: defaultSourceOptions(), server: defaultClientOptions(), output: outputText, usage: vfs.OS.Usage}
	cmd := &cobra.Command{
		Use:   "create [LABEL]",
		Short: "Make a snapshot",
		Long: `Make a snapshot and print its name. LABEL is a text to find it by later, such as
before-upgrade.

A running server is not stopped or slowed: on ZFS the snapshot has every write that
was acknowledged before, and opening it is like starting after a power cut. The
server is only asked for its revision. If it does not answer, the snapshot is made
all the same, and its revision is unknown until tarn snapshot verify reads it.
Without a server the revision is read from the files.

On other file systems a running server sends its data, as for etcdctl snapshot save,
so there it must answer. Without a server the files are copied, by sharing their
blocks where the file system can do that; until that is done no server starts on the
directory, so a large copy is best made while the server runs. A copy is not begun if
it would fill the file system so far that the server refuses writes. While another
command of tarn has the directory, such as a snapshot that is made at the same time,
it is waited for, at most 30 seconds.

The server at --endpoint must be the one that has the data directory. If another one
answers there, no copy is made, and on ZFS the revision is not taken from it.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 made, 1 not made, 2 the command line is not valid, 3 there is no such
data directory.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return withExit(exitUsage, fmt.Errorf("arguments: %d given, at most 1 expected; usage: %s", len(args), cmd.UseLine()))
			}
			return nil
		},
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	boolFlag(fs, &opts.hold, "hold", "keep it from being destroyed until tarn snapshot release")
	opts.server.register(fs)
	addOutputFlag(fs, &opts.output)
	opts.endpoint = &opts.server
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		if len(args) > 0 {
			opts.label = args[0]
			if err := zfs.ValidLabel(opts.label); err != nil {
				return withExit(exitUsage, fmt.Errorf("LABEL can not be %q: %w", opts.label, err))
			}
			if s := (zfs.Snapshot{Label: opts.label}); s.IsSafety() {
				return withExit(exitUsage, fmt.Errorf("LABEL can not be %q: labels that begin with %s are those of tarn restore, which newest leaves out", opts.label, zfs.SafetyLabel))
			}
		}
		return runSnapshotCreate(cmd.Context(), opts, p)
	}
	return cmd
}

func runSnapshotCreate(ctx context.Context, opts snapshotCreateOptions, p process) error {
	from, err := opts.open(ctx)
	if err != nil {
		return err
	}
	create := zfs.CreateOptions{Version: tarnVersion, Label: opts.label, Files: store.Files()}
	if opts.hold {
		create.Hold = keepTag
	}
	done, warning, err := opts.prepareInTurn(ctx, from, &create, p.stderr)
	if err != nil {
		return fmt.Errorf("no snapshot is made: %w", err)
	}
	create.Time = time.Now()
	s, err := from.Create(ctx, create)
	err = errors.Join(err, done())
	if err != nil {
		return err
	}
	if s.StoreID == "" {
		if id, err := readSnapshotID(ctx, from, s.Name); errors.Is(err, fs.ErrPermission) {
			// As for a user that makes backups alone: whoever verifies it can tell.
		} else if err != nil {
			warning = errors.Join(warning, fmt.Errorf("the store's ID is not recorded with it: %w", err))
		} else {
			s.StoreID = id
		}
	}
	if warning != nil {
		fmt.Fprintf(p.stderr, "tarn: the snapshot %s is made, but: %v\n", s.Name, warning)
	}
	if opts.output == outputJSON {
		return json.NewEncoder(p.stdout).Encode(s)
	}
	_, err = fmt.Fprintln(p.stdout, s.Name)
	return err
}

// prepare finds out the revision, and what must not change while the snapshot is
// made. done ends that. warning is what a person should know, in spite of which
// the snapshot can be made.
func (o *snapshotCreateOptions) prepare(ctx context.Context, from zfs.Snapshots, create *zfs.CreateOptions) (done func() error, warning, err error) {
	done = func() error { return nil }
	d, onZFS := from.(*zfs.Dataset)
	if onZFS {
		// A suspended pool is told by zfs; its files would not be told from slow ones.
		if _, err := d.Facts(ctx); err != nil {
			return nil, nil, err
		}
	}
	dir := from.Dir()
	if dir == "" {
		return nil, nil, fmt.Errorf("the dataset %s: %w; mount it (zfs mount %s), or see whether it is the right one",
			from.Source(), zfs.ErrNotMounted, from.Source())
	}
	// Who may not read the files can not see in them whether a server runs, either.
	if holder, running := vfs.HolderOf(dir); running || onZFS && hiddenFiles(dir) {
		asked, err := o.askOwner(ctx, dir, holder)
		switch {
		case err == nil:
			create.Revision = asked.revision
		case onZFS:
			return done, fmt.Errorf("its revision is unknown: %w", err), nil
		case holder.Offline:
			return nil, nil, err
		default:
			return nil, nil, fmt.Errorf("the data directory %s is in use by %s, so the server must send its data: %w", dir, holder.Who, err)
		}
		if !onZFS {
			if err := o.leavesRoom(dir, asked.size); err != nil {
				return nil, nil, err
			}
			if !asked.compared {
				warning = fmt.Errorf("whether the server at %s is the one that has %s could not be told, as its %s names none: look at tarn snapshot show, and restart the server for the next time",
					o.server.endpoint, dir, vfs.LockName)
			}
			create.Fill = o.fill
		}
		return done, warning, nil
	}
	view, err := store.OpenView(ctx, dir)
	if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
		return nil, nil, withExit(exitNoSnapshot, fmt.Errorf("the data directory %s does not exist; see whether --data-dir is the right one", dir))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the store in %s: %w", dir, withOwnerAdvice(err, dir))
	}
	create.Revision, create.StoreID = view.Revision(), view.ID()
	if err := view.Close(); err != nil || onZFS {
		return done, nil, err
	}
	lock, err := vfs.Lock(dir)
	if err != nil {
		return nil, nil, withOwnerAdvice(err, dir)
	}
	if err := o.leavesRoomFor(dir, create.Files); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return lock.Close, nil, nil
}

// fill puts the data that the server sends into dir.
func (o *snapshotCreateOptions) fill(ctx context.Context, dir string) error {
	if err := o.server.saveTree(ctx, dir); err != nil {
		return err
	}
	return store.ForgetLog(dir)
}

// hiddenFiles tells whether the store belongs to somebody who keeps others out.
func hiddenFiles(dir string) bool {
	f, err := os.Open(filepath.Join(dir, treeFile))
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrPermission)
}

// readSnapshotID reads the store's ID from a snapshot and records it there.
func readSnapshotID(ctx context.Context, from zfs.Snapshots, name string) (id string, err error) {
	dir, cleanup, err := from.Open(ctx, name)
	if err != nil {
		return "", err
	}
	id, err = store.ReadID(dir)
	if err = errors.Join(err, cleanup()); err != nil || id == "" {
		return "", err
	}
	return id, from.SetProperty(ctx, name, zfs.PropStoreID, id)
}
