package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/wal"
)

// stage makes the new state: the snapshot's tree, with what the snapshot's log has beyond it, at the new
// revision. It has no log then, and says so: it begins one as a new store does.
func (x *restorer) stage(ctx context.Context) error {
	if err := removeStaging(x.FS, x.staging); err != nil {
		return fmt.Errorf("remove what an earlier restore has left: %w", err)
	}
	if err := x.FS.MkdirAll(x.staging); err != nil {
		return err
	}
	path := filepath.Join(x.staging, treeName)
	err := vfs.CopyFile(ctx, x.FS, path, filepath.Join(x.Source, treeName), func(done, total int64) {
		x.progress(RestoreStepCopy, done, total)
	})
	if err != nil {
		return err
	}
	if err := x.give(x.staging, path); err != nil {
		return err
	}
	if err := x.FS.SyncDir(x.staging); err != nil {
		return err
	}
	if err := x.complete(path); err != nil {
		return err
	}
	return x.verify(ctx, path)
}

// complete brings the copied tree to the state that it is to have, in one commit.
func (x *restorer) complete(path string) (err error) {
	t, err := tree.Open(tree.Options{FS: x.FS, Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	meta, err := t.Meta()
	if err != nil {
		return err
	}
	m := merger{batch: tree.Batch{Seq: new(uint64)}}
	if err := m.replay(filepath.Join(x.Source, walName), meta); err != nil {
		return err
	}
	addControls(&m.batch, m.controls)
	if x.report.Revision > x.report.SnapshotRevision {
		if err := x.advance(t, meta, &m.batch); err != nil {
			return err
		}
	}
	return t.Apply(&m.batch)
}

// advance moves the revision, as etcd's tools do it (DSK-17): a record without a key at the new
// revision, up to which all counts as compacted. What else counts up must not fall behind the old
// state either.
func (x *restorer) advance(t *tree.Tree, meta tree.Meta, b *tree.Batch) error {
	to := x.report.Revision
	b.Put = append(b.Put, tree.Record{Rev: Revision{Main: to}, Value: []byte{}})
	b.ScheduledCompact = &to
	term := max(meta.Term, x.old.term)
	if b.Term != nil {
		term = max(term, *b.Term)
	}
	b.Term = &term
	auth, err := t.Auth()
	if err != nil {
		return err
	}
	revision := auth.Revision
	if b.AuthRevision != nil {
		revision = max(revision, *b.AuthRevision)
	}
	if revision > 0 {
		revision = max(revision, x.old.authRevision) + 1
		b.AuthRevision = &revision
	}
	return nil
}

// merger collects what a log has and the tree has not.
type merger struct {
	batch    tree.Batch
	controls []control
}

func (m *merger) replay(dir string, meta tree.Meta) error {
	found, err := wal.Check(wal.Options{Dir: dir, StoreID: meta.StoreID, AfterSeq: meta.Seq}, func(seq uint64, payload []byte) error {
		if seq <= meta.Seq {
			return nil
		}
		return decodeFrame(append([]byte(nil), payload...), m)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the log of the snapshot: %w", err)
	}
	return errors.Join(found.Problems...)
}

func (m *merger) replayChange(rev Revision, dead bool, value []byte) error {
	m.batch.Put = append(m.batch.Put, tree.Record{Rev: rev, Tombstone: dead, Value: value})
	return nil
}

func (m *merger) replayControl(c control) error {
	m.controls = append(m.controls, c)
	return nil
}

// verify compares the new state with the snapshot.
func (x *restorer) verify(ctx context.Context, path string) error {
	x.progress(RestoreStepVerify, 0, 0)
	want, to := &x.source, x.report.Revision
	got := CheckReport{liveAt: want.Revision}
	if err := got.checkTree(ctx, path); err != nil {
		return err
	}
	if len(got.Findings) > 0 {
		return fmt.Errorf("the copy of %s is damaged, and the snapshot is not: %s; check memory and disk, then try again", x.name(), strings.Join(got.Findings, "; "))
	}
	if got.Revision != to || got.Keys != want.Keys || got.live != want.live || got.StoreID != want.StoreID {
		return fmt.Errorf("the copy of %s is not what was read (revision %d instead of %d, %d keys instead of %d, hash %08x instead of %08x); check memory and disk, then try again",
			x.name(), got.Revision, to, got.Keys, want.Keys, got.live, want.live)
	}
	return nil
}
