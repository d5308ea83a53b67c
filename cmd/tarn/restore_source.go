package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// restoreSource is the directory to restore from.
type restoreSource struct {
	dir        string
	name       string
	known      int64                           // newest revision that snapshots of the data directory tell of
	knownStore string                          // the store in the data directory, as the newest of its own snapshots tells; "" if none does
	from       zfs.Snapshots                   // nil for a directory
	recorded   zfs.Snapshot                    // what is recorded of it, empty for a directory
	checkFiles func(ctx context.Context) error // compares the files with what is recorded of them
	cleanup    func() error
}

// findSource finds the directory that NAME stands for, and what is known beside it.
func (o *restoreOptions) findSource(ctx context.Context) (s restoreSource, err error) {
	if o.argIsDir() {
		s, err = o.sourceDir()
		if err == nil {
			o.own(ctx, &s)
		}
		return s, err
	}
	has := o.sourceOptions
	if o.backup != "" {
		has = sourceOptions{dataset: o.backup}
	}
	from, snaps, err := has.listedSnapshots(ctx)
	if err != nil {
		return restoreSource{}, err
	}
	snap, err := findSnapshot(from, snaps, o.arg)
	if err != nil {
		return restoreSource{}, err
	}
	s = restoreSource{name: snap.Name, from: from, recorded: snap}
	s.checkFiles = func(ctx context.Context) error { return from.CheckFiles(ctx, snap.Name) }
	if s.learn(snaps); o.backup != "" {
		s.knownStore = ""
		o.own(ctx, &s)
	}
	s.dir, s.cleanup, err = from.Open(ctx, snap.Name)
	if errors.Is(err, zfs.ErrDamaged) {
		err = withExit(exitRestoreSnapshot, err)
	}
	return s, withSnapshotExit(err)
}

// argIsDir tells whether NAME is the path of a directory.
func (o *restoreOptions) argIsDir() bool {
	return filepath.IsAbs(o.arg) || strings.HasPrefix(o.arg, ".") || strings.ContainsRune(o.arg, '/') && !strings.ContainsRune(o.arg, '@')
}

// sourceDir is the source that a path stands for.
func (o *restoreOptions) sourceDir() (restoreSource, error) {
	info, err := os.Stat(o.arg)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return restoreSource{}, withExit(exitNoSnapshot, fmt.Errorf("restore %s: there is no such directory: give the path of a directory that holds a store, or a name that tarn snapshot list shows", o.arg))
	case err != nil:
		return restoreSource{}, fmt.Errorf("restore %s: %w", o.arg, withOwnerAdvice(err, filepath.Dir(o.arg)))
	case !info.IsDir():
		return restoreSource{}, withExit(exitRestoreSnapshot, fmt.Errorf("restore %s: it is a file and no directory; a snapshot file of etcd, which tarn backup export and etcdctl snapshot save make too, is taken by: tarn import etcd %s --data-dir DIR", o.arg, o.arg))
	}
	return restoreSource{
		dir: o.arg, name: o.arg, cleanup: func() error { return nil },
		checkFiles: func(ctx context.Context) error { return zfs.CheckCopy(ctx, o.arg) },
	}, nil
}

// own adds what the snapshots of the data directory tell. Without them, or without the right to see
// them, less is known, and the revision moves further.
func (o *restoreOptions) own(ctx context.Context, s *restoreSource) {
	if _, snaps, err := o.listedSnapshots(ctx); err == nil {
		s.learn(snaps)
	}
}

// learn adds what snapshots tell, the oldest first.
func (s *restoreSource) learn(snaps []zfs.Snapshot) {
	for _, snap := range snaps {
		s.known = max(s.known, snap.Revision)
		if snap.StoreID != "" {
			s.knownStore = snap.StoreID
		}
	}
}

// compare compares what was found in the source, and its files, with what is recorded of them.
func (s *restoreSource) compare(ctx context.Context, r store.CheckReport) (findings []string, err error) {
	if s.recorded.Name != "" {
		findings = againstRecord(s.recorded, r)
	}
	if err = s.checkFiles(ctx); err == nil && s.recorded.Name != "" && missingTree(s.dir) {
		findings = append(findings, treeFile+" is missing")
	}
	if errors.Is(err, zfs.ErrDamaged) {
		findings, err = append(findings, err.Error()), nil
	}
	return findings, err
}

// useAnother is the next step for a snapshot that is damaged.
const useAnother = "use another one (tarn snapshot verify --all finds a good one)"

// openView opens the source for reading single keys. Nothing is printed out of one that is damaged.
func (s *restoreSource) openView(ctx context.Context) (*store.View, error) {
	v, err := openSnapshotView(ctx, s.dir)
	if err != nil {
		return nil, err
	}
	r := store.CheckReport{ContentRead: true, Revision: v.Revision(), StoreID: v.ID()}
	if s.recorded.Verified != nil {
		var h store.HashResult
		h, err = v.HashKV(ctx, 0)
		r.Hash = h.Hash
	}
	var findings []string
	if err == nil {
		findings, err = s.compare(ctx, r)
	}
	if len(findings) > 0 {
		err = withExit(exitRestoreSnapshot, fmt.Errorf("the snapshot is damaged: %s; %s", strings.Join(findings, "; "), useAnother))
	}
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// openSnapshotView opens a snapshot for reading. That it is damaged has an exit code of its own.
func openSnapshotView(ctx context.Context, dir string) (*store.View, error) {
	v, err := store.OpenView(ctx, dir)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrForeign) || errors.Is(err, os.ErrNotExist) {
		return v, withExit(exitRestoreSnapshot, fmt.Errorf("%w; %s", err, useAnother))
	}
	return v, withOwnerAdvice(err, dir)
}
