package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/wal"
)

// CheckReport is what Check found in a data directory.
type CheckReport struct {
	StoreID         string
	Revision        int64
	CompactRevision int64 // -1 if never compacted
	Keys            int64
	TreeBytes       int64
	WALBytes        int64
	Frames          int      // in the log
	TornTail        bool     // the log ends in a torn frame, as a crash leaves it: no damage
	Findings        []string // damage; empty if there is none
	Hash            uint32   // HashKV at Revision; 0 if there are findings
}

// Check verifies a data directory without changing it: every page of the tree, every
// record, every frame of the log, and that both fit together.
//
// ErrInUse is returned while a server has the directory. Damage is no error: it
// is in the report. An error says that the check could not be done.
func Check(ctx context.Context, dir string) (r CheckReport, err error) {
	err = r.openDir(ctx, dir, true, func(t *tree.Tree, meta tree.Meta) error {
		return r.recover(ctx, dir, t, meta)
	})
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("%w; stop the server, or check a snapshot", err)
	}
	return r, err
}

// openDir goes on with the tree of a directory that no server has open, if it can be read.
func (r *CheckReport) openDir(ctx context.Context, dir string, verify bool, goOn func(*tree.Tree, tree.Meta) error) error {
	path := filepath.Join(dir, treeName)
	if _, err := os.Stat(path); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if log, _ := filepath.Glob(filepath.Join(dir, walName, "*.wal")); len(log) > 0 {
			r.Findings = append(r.Findings, path+" is missing, but its log is there")
			return nil
		}
		return fmt.Errorf("%s holds no store: %w", dir, err)
	}
	if who, locked := vfs.Locked(dir); locked {
		return fmt.Errorf("%w: %s (%s)", ErrInUse, dir, who)
	}
	return r.openTree(ctx, path, verify, func(t *tree.Tree, meta tree.Meta) error {
		if log, err := hasLog(vfs.OS, dir); err != nil {
			return err
		} else if log && meta.StoreID == [16]byte{} {
			r.Findings = append(r.Findings, errStrayLog(dir).Error())
		}
		return goOn(t, meta)
	})
}

// CheckTree verifies a tree's file by itself, as a snapshot is one: every page and every record. It
// changes nothing. fs.ErrNotExist and tree.ErrLocked are returned as their texts say.
func CheckTree(ctx context.Context, path string) (r CheckReport, err error) {
	err = r.openTree(ctx, path, true, func(t *tree.Tree, meta tree.Meta) error {
		return r.recover(ctx, "", t, meta)
	})
	return r, err
}

// openTree goes on with the tree if its meta data can be read. With verify all of the tree is
// read before, for findings.
func (r *CheckReport) openTree(ctx context.Context, path string, verify bool, goOn func(*tree.Tree, tree.Meta) error) error {
	t, err := tree.Open(tree.Options{Path: path, ReadOnly: true})
	if errors.Is(err, tree.ErrDamaged) || errors.Is(err, tree.ErrForeign) {
		r.Findings = append(r.Findings, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	finding := func(text string) { r.Findings = append(r.Findings, "tree: "+text) }
	if verify {
		if err := t.Check(ctx, finding); err != nil {
			return err
		}
	}
	meta, err := t.Meta()
	if err != nil {
		finding(err.Error())
		return nil
	}
	r.StoreID, r.TreeBytes = fmt.Sprintf("%x", meta.StoreID[:]), t.Size()
	return goOn(t, meta)
}

// recover loads the store and adds to the report what is in it.
func (r *CheckReport) recover(ctx context.Context, dir string, t *tree.Tree, meta tree.Meta) error {
	s, err := r.load(ctx, dir, t, meta)
	if err != nil {
		return err
	}
	r.Revision, r.CompactRevision = s.head.revision, s.head.compacted
	r.Keys = s.mem.index.sumOf(span{open: true}).live
	if len(r.Findings) == 0 {
		r.Hash, err = s.hashUpTo(ctx, r.Revision, r.CompactRevision, false)
	}
	return err
}

// load does in memory what Open would do. Without a directory there is no log.
func (r *CheckReport) load(ctx context.Context, dir string, t *tree.Tree, meta tree.Meta) (*Store, error) {
	s := &Store{opts: Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}.withDefaults(), tree: t}
	s.log = s.opts.Logger
	s.failure.ch = make(chan struct{})
	s.hub.init(s)
	s.leases.init()
	rec := &recovery{s: s, meta: meta, leases: make(map[int64]*lease)}
	if err := rec.loadTree(); err != nil {
		r.Findings = append(r.Findings, err.Error())
	}
	if dir != "" {
		if err := r.replay(ctx, rec); err != nil {
			return nil, err
		}
	}
	rec.finish()
	return s, nil
}

// replay checks the log and applies what the tree has not.
func (r *CheckReport) replay(ctx context.Context, rec *recovery) error {
	meta := rec.meta
	o := wal.Options{Dir: filepath.Join(rec.s.opts.Dir, walName), StoreID: meta.StoreID, AfterSeq: meta.Seq, MustReach: meta.StoreID != [16]byte{}}
	var broken error
	found, err := wal.Check(o, func(seq uint64, payload []byte) error {
		if seq > meta.Seq && broken == nil {
			broken = rec.replayFrame(seq, slices.Clone(payload))
		}
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the log: %w", err)
	}
	for _, p := range append(found.Problems, broken) {
		if p != nil {
			r.Findings = append(r.Findings, "log: "+p.Error())
		}
	}
	r.WALBytes, r.Frames, r.TornTail = found.Bytes, found.Frames, found.TornBytes > 0
	return nil
}
