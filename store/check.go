package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/wal"
)

// CheckReport is what Check found in a data directory.
type CheckReport struct {
	StoreID   string // "" if the tree has none yet, or could not be read
	TreeBytes int64

	// ContentRead is set if the tree was read to its end. Only then the next three are known, and
	// include what was good in the log.
	ContentRead     bool
	Revision        int64
	CompactRevision int64 // -1 if never compacted
	Keys            int64
	Hash            uint32 // HashKV at Revision; not known (0) if there are findings

	// LogRead is set if the log was looked at. Only then the next three are known.
	LogRead  bool
	WALBytes int64
	Frames   int
	TornTail bool // the log ends in a torn frame, as a crash leaves it: no damage

	Findings []string // damage; empty if there is none
	Notes    []string // what is odd, and costs nothing

	// live is asked for by setting liveAt, to a revision or to headRevision.
	liveAt int64
	live   uint32 // Store.liveHash at liveAt
}

// headRevision stands for the newest revision.
const headRevision = -1

// Check verifies a data directory without changing it: every page of the tree, every
// record, every frame of the log, and that both fit together.
//
// ErrInUse is returned while a server has the directory. Damage is no error: it
// is in the report. An error says that the check could not be done.
func Check(ctx context.Context, dir string) (r CheckReport, err error) {
	err = r.checkDir(ctx, dir)
	return r, err
}

func (r *CheckReport) checkDir(ctx context.Context, dir string) error {
	err := r.openDir(ctx, dir, true, func(t *tree.Tree, meta tree.Meta) error {
		return r.recover(ctx, dir, t, meta)
	})
	r.noteLeftovers(dir)
	if errors.Is(err, ErrInUse) {
		h, _ := vfs.HolderOf(dir)
		err = fmt.Errorf("%w; %s", err, h.NextStep("stop the server, or check a snapshot"))
	}
	return err
}

// openDir goes on with the tree of a directory that no server has open, if it can be read, and looks
// at its meta pages after that.
func (r *CheckReport) openDir(ctx context.Context, dir string, verify bool, goOn func(*tree.Tree, tree.Meta) error) error {
	if err := noRestoreIn(vfs.OS, dir); err != nil {
		return err
	}
	path := filepath.Join(dir, treeName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.noTree(dir, err)
	case err != nil:
		return err
	}
	r.TreeBytes = info.Size()
	if who, locked := vfs.Locked(dir); locked {
		return fmt.Errorf("%w: %s (%s)", ErrInUse, dir, who)
	}
	return r.openTree(ctx, path, verify, func(t *tree.Tree, meta tree.Meta) error {
		if log, err := hasLog(vfs.OS, dir); err != nil {
			return err
		} else if log && meta.StoreID == (tree.StoreID{}) {
			r.Findings = append(r.Findings, errStrayLog(dir).Error())
		}
		if err := goOn(t, meta); err != nil {
			return err
		}
		return r.metaPages(t, meta)
	})
}

// noTree tells why there is no tree: a finding, or an error.
func (r *CheckReport) noTree(dir string, missing error) error {
	if log, err := hasLog(vfs.OS, dir); err != nil {
		return err
	} else if log {
		r.Findings = append(r.Findings, filepath.Join(dir, treeName)+" is missing, but its log is there")
		return nil
	}
	names, err := vfs.OS.List(dir)
	if err == nil {
		err = notOurs(dir, names)
	}
	if err == nil {
		err = missing
	}
	return fmt.Errorf("%s holds no store: %w", dir, err)
}

// metaPages looks for a damaged one. It is damage if the content could be older than it was: with a log
// that does not go on from there, or with none, in a file that was copied here.
func (r *CheckReport) metaPages(t *tree.Tree, meta tree.Meta) error {
	page, bad, err := t.DamagedMeta()
	if err != nil || !bad {
		return err
	}
	text := fmt.Sprintf("tree: meta page %d of %s is damaged, so that the file is read by the other one, which may be that of the commit before", page, t.Path())
	switch {
	case len(r.Findings) > 0, r.StoreID == "" && meta.Revision > 0:
		r.Findings = append(r.Findings, text)
	default:
		r.Notes = append(r.Notes, text+"; nothing is lost, as the log goes on from there, and the server repairs the page. A power cut can leave that; without one, look at the disk")
	}
	return nil
}

// CheckTree verifies a tree's file by itself, as a snapshot is one: every page and every record. It
// changes nothing. fs.ErrNotExist and tree.ErrLocked are returned as their texts say.
func CheckTree(ctx context.Context, path string) (r CheckReport, err error) {
	err = r.checkTree(ctx, path)
	return r, err
}

func (r *CheckReport) checkTree(ctx context.Context, path string) error {
	return r.openTree(ctx, path, true, func(t *tree.Tree, meta tree.Meta) error {
		if page, bad, err := t.DamagedMeta(); err != nil {
			return err
		} else if bad {
			r.Findings = append(r.Findings, fmt.Sprintf("tree: meta page %d is damaged, and what the other one stands for may be older", page))
		}
		return r.recover(ctx, "", t, meta)
	})
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
	if meta.StoreID != (tree.StoreID{}) {
		r.StoreID = fmt.Sprintf("%x", meta.StoreID[:])
	}
	r.TreeBytes = t.Size()
	return goOn(t, meta)
}

// recover loads the store and adds to the report what is in it.
func (r *CheckReport) recover(ctx context.Context, dir string, t *tree.Tree, meta tree.Meta) error {
	s, err := r.load(ctx, dir, t, meta)
	if err != nil || !r.ContentRead {
		return err
	}
	r.Revision, r.CompactRevision = s.head.revision, s.head.compacted
	r.Keys = s.mem.index.sumOf(span{open: true}).live
	if len(r.Findings) > 0 {
		return nil
	}
	if r.Hash, err = s.hashUpTo(ctx, r.Revision, r.CompactRevision, false); err != nil || r.liveAt == 0 {
		return err
	}
	at := r.liveAt
	if at == headRevision {
		at = r.Revision
	}
	r.live, err = s.liveHash(ctx, at)
	return err
}

// load does in memory what Open would do. Without a directory there is no log. The store is of use
// only if ContentRead is set then.
func (r *CheckReport) load(ctx context.Context, dir string, t *tree.Tree, meta tree.Meta) (*Store, error) {
	s := offline(dir, t)
	rec := &recovery{s: s, meta: meta, leases: make(map[int64]*lease)}
	if err := rec.loadTree(); err != nil {
		r.Findings = append(r.Findings, err.Error())
	} else {
		r.ContentRead = true
	}
	if dir != "" {
		if err := r.replay(ctx, rec); err != nil {
			return nil, err
		}
	}
	if r.ContentRead {
		rec.finish()
	}
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
	r.LogRead = true
	r.WALBytes, r.Frames, r.TornTail = found.Bytes, found.Frames, found.TornBytes > 0
	return nil
}
