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

// askTime is how long the server gets to tell its revision: the snapshot matters more.
const askTime = 10 * time.Second

// snapshotCreateOptions are the settings of tarn snapshot create.
type snapshotCreateOptions struct {
	sourceOptions
	server clientOptions
	label  string
	hold   bool
	output outputFormat
}

func newSnapshotCreateCommand(p process) *cobra.Command {
	opts := snapshotCreateOptions{sourceOptions: defaultSourceOptions(), server: defaultClientOptions(), output: outputText}
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
blocks where the file system can do that.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 made, 1 not made, 2 the command line is not valid.`,
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
	done, warning, err := opts.prepare(ctx, from, &create)
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
	if who, running := vfs.Locked(dir); running || onZFS && hiddenFiles(dir) {
		revision, err := o.askRevision(ctx)
		switch {
		case err == nil:
			create.Revision = revision
		case onZFS:
			warning = fmt.Errorf("its revision is unknown: %w", err)
		default:
			return nil, nil, fmt.Errorf("the data directory %s is in use by %s, so the server must send its data: %w", dir, who, err)
		}
		if !onZFS {
			before, err := newestID(ctx, from)
			if err != nil {
				return nil, nil, err
			}
			create.Fill = func(ctx context.Context, dir string) error { return o.fill(ctx, dir, before) }
		}
		return done, warning, nil
	}
	view, err := store.OpenView(ctx, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("the store in %s: %w", dir, err)
	}
	create.Revision, create.StoreID = view.Revision(), view.ID()
	if err := view.Close(); err != nil || onZFS {
		return done, nil, err
	}
	lock, err := vfs.Lock(dir)
	if err != nil {
		return nil, nil, err
	}
	return lock.Close, nil, nil
}

// newestID is the ID of the store that the newest snapshot is of, "" if none is known.
func newestID(ctx context.Context, from zfs.Snapshots) (string, error) {
	snaps, err := from.List(ctx)
	if err != nil || len(snaps) == 0 {
		return "", err
	}
	return snaps[len(snaps)-1].StoreID, nil
}

// fill puts the data that the server sends into dir. Whether it is the server of the data directory can
// not be seen there while that is in use, but copies of two stores side by side are a mistake.
func (o *snapshotCreateOptions) fill(ctx context.Context, dir, before string) error {
	if err := o.server.saveTree(ctx, dir); err != nil {
		return err
	}
	if err := store.ForgetLog(dir); err != nil {
		return err
	}
	id, err := store.ReadID(dir)
	if err == nil && before != "" && id != before {
		err = fmt.Errorf("the server at %s has the store %s, and the newest copy is of %s; give the endpoint of the server that has the data directory",
			o.server.endpoint, id, before)
	}
	return err
}

// hiddenFiles tells whether the store belongs to somebody who keeps others out.
func hiddenFiles(dir string) bool {
	f, err := os.Open(filepath.Join(dir, treeFile))
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrPermission)
}

// askRevision asks the running server for its newest revision.
func (o *snapshotCreateOptions) askRevision(ctx context.Context) (int64, error) {
	c, err := o.server.dial()
	if err != nil {
		return 0, withExit(exitUsage, err)
	}
	defer c.close()
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var r *statusReport
	if asking, err = o.server.login(asking, c); err == nil {
		r, err = askStatus(asking, c)
	}
	if err != nil {
		return 0, fmt.Errorf("ask %s for its revision: %w", o.server.endpoint, o.server.explain(ctx, err))
	}
	return r.Revision, nil
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
