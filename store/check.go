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
func Check(ctx context.Context, dir string) (CheckReport, error) {
	var r CheckReport
	path := filepath.Join(dir, treeName)
	if _, err := os.Stat(path); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		if log, _ := filepath.Glob(filepath.Join(dir, walName, "*.wal")); len(log) > 0 {
			r.Findings = append(r.Findings, path+" is missing, but its log is there")
			return r, nil
		}
		return r, fmt.Errorf("%s holds no store: %w", dir, err)
	}
	if who, locked := vfs.Locked(dir); locked {
		return r, fmt.Errorf("%w: %s (%s); stop the server, or check a snapshot", ErrInUse, dir, who)
	}
	t, err := tree.Open(tree.Options{Path: path, ReadOnly: true})
	if errors.Is(err, tree.ErrDamaged) || errors.Is(err, tree.ErrForeign) {
		r.Findings = append(r.Findings, err.Error())
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer t.Close()
	finding := func(text string) { r.Findings = append(r.Findings, "tree: "+text) }
	if err := t.Check(ctx, finding); err != nil {
		return r, err
	}
	meta, err := t.Meta()
	if err != nil {
		finding(err.Error())
		return r, nil
	}
	r.StoreID, r.TreeBytes = fmt.Sprintf("%x", meta.StoreID[:]), t.Size()
	return r, r.recover(ctx, dir, t, meta)
}

// recover does in memory what Open would do.
func (r *CheckReport) recover(ctx context.Context, dir string, t *tree.Tree, meta tree.Meta) error {
	s := &Store{opts: Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}.withDefaults(), tree: t}
	s.log = s.opts.Logger
	s.failure.ch = make(chan struct{})
	s.hub.init(s)
	s.leases.init()
	rec := &recovery{s: s, meta: meta, leases: make(map[int64]*lease)}
	if err := rec.loadTree(); err != nil {
		r.Findings = append(r.Findings, err.Error())
	}
	o := wal.Options{Dir: filepath.Join(dir, walName), StoreID: meta.StoreID, AfterSeq: meta.Seq, MustReach: meta.StoreID != [16]byte{}}
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
	rec.finish()
	r.Revision, r.CompactRevision = s.head.revision, s.head.compacted
	r.Keys = s.mem.index.sumOf(span{open: true}).live
	r.WALBytes, r.Frames, r.TornTail = found.Bytes, found.Frames, found.TornBytes > 0
	if len(r.Findings) == 0 {
		r.Hash, err = s.hashUpTo(ctx, r.Revision, r.CompactRevision, false)
		return err
	}
	return nil
}
