package tree

import (
	"errors"

	bolt "go.etcd.io/bbolt"

	"github.com/tarn-kv/tarn/store/vfs"
)

// giveRule says which free pages go back to the file system. What the next commits use
// again is better kept: writing it then takes no new blocks.
type giveRule struct {
	run   int64 // shortest run of free pages, in bytes
	least int64 // least that there must be to gain in all, in bytes
	share int64 // and it must be one part in so many of what the file takes
	part  int64 // longest hole that is made at once, in bytes
	step  int64 // most that one call of GiveBack gives back, in bytes
}

// defaultGiving: on ext4 a part takes less than a millisecond, for which reads of pages that are not in
// memory wait. For a whole step only writers of the tree do.
var defaultGiving = giveRule{run: 256 << 10, least: 16 << 20, share: 4, part: 2 << 20, step: 32 << 20}

// GiveBack gives the blocks of long runs of free pages back to the file system, if there is
// much to gain: the file keeps its length and gets holes. It does a bounded part of that, beginning with from = 0,
// and returns how many bytes it gave and where to go on; next is 0 when all is done. Reads go on; Apply may come between two parts.
//
// ErrPagesHeld is returned while a read is open that began so long ago that it may need what
// is free now: try again later. Of other errors those that match ErrFailed are final, as Apply's are.
func (t *Tree) GiveBack(from int64) (given, next int64, err error) {
	t.write.Lock()
	defer t.write.Unlock()
	if err := t.writable(); err != nil {
		return 0, 0, err
	}
	h := t.handle
	if h == nil {
		return 0, 0, pathError("write", t.opts.Path, ErrClosed)
	}
	if z := t.sizes.Load(); t.noHoles || z.pages-z.inUse < t.giving.least {
		return 0, 0, nil
	}
	err = guard("look for free pages in", t.opts.Path, func() (err error) {
		given, next, err = t.giveBack(h, from)
		return err
	})
	if errors.Is(err, vfs.ErrNoHoles) {
		t.noHoles = true
		t.opts.Logger.Debug("free pages of the tree are not given back", "path", t.opts.Path, "error", err)
		given, next, err = 0, 0, nil
	}
	t.measure(h)
	return given, next, err
}

func (t *Tree) giveBack(h *handle, from int64) (given, next int64, err error) {
	f, err := h.freeSpace()
	if err != nil {
		return 0, 0, err
	}
	h.reads.committed(f.transaction)
	olderThanNewest, olderThanBefore := h.reads.older()
	if olderThanBefore {
		return 0, 0, ErrPagesHeld
	}
	if from == 0 {
		late, worth := t.gain(h, f)
		switch {
		case !worth:
			return 0, 0, nil
		case late && olderThanNewest:
			return 0, 0, ErrPagesHeld
		case late:
			// After one commit more, all of it is free in both.
			if err := t.update(h, func(*bolt.Tx) (bool, error) { return true, nil }); err != nil {
				return 0, 0, err
			}
			if f, err = h.freeSpace(); err != nil {
				return 0, 0, err
			}
		}
	}
	return t.punch(h, f, from)
}

// gain looks whether giving back is worth it. late says that much of it is free in the newest transaction
// only.
func (t *Tree) gain(h *handle, f freeSpace) (late, worth bool) {
	gain, empty := h.gain(f.spans(f.newest, t.giving, h.blockSize()), t.giving.run)
	takes := int64(f.pages*f.pageSize) - empty
	if gain < t.giving.least || gain < takes/t.giving.share {
		return false, false
	}
	sure, _ := h.gain(f.spans(f.both, t.giving, h.blockSize()), t.giving.run)
	return gain-sure >= t.giving.least, true
}

// gain returns the bytes with blocks in those spans that have enough of them, and the bytes
// without in all spans.
func (h *handle) gain(spans []span, least int64) (gain, empty int64) {
	for _, s := range spans {
		n := dataIn(h.file, s)
		if n >= least {
			gain += n
		}
		empty += s.len() - n
	}
	return gain, empty
}

// punch makes holes of what is free in the two newest transactions, from a place in the file on.
func (t *Tree) punch(h *handle, f freeSpace, from int64) (given, next int64, err error) {
	// All looks come before the first hole: on some file systems a look waits until the changes are written.
	var holes []span
	var length int64
	for _, s := range f.spans(f.both, t.giving, h.blockSize()) {
		if s.from < from {
			continue
		}
		if length > 0 && length+s.len() > t.giving.step {
			next = s.from
			break
		}
		if n := dataIn(h.file, s); n >= t.giving.run { // less are pages that were used meanwhile, in a hole
			holes = append(holes, s)
			length += s.len()
			given += n
		}
	}
	for _, s := range holes {
		if err := t.opts.FS.PunchHole(t.opts.Path, h.file, s.from, s.len()); err != nil {
			return 0, 0, pathError("give back free pages of", t.opts.Path, err)
		}
		h.noteHole(s)
	}
	return given, next, nil
}

// noteHole remembers that a part of the file was given back.
func (h *handle) noteHole(s span) {
	if need := int(s.to/holeBlock/64) + 1; len(h.gave) < need {
		h.gave = append(h.gave, make(bitmap, need-len(h.gave))...)
	}
	for at := s.from / holeBlock; at < s.to/holeBlock; at++ {
		h.gave.set(uint64(at))
	}
}

// gaveOf tells whether something of a part of the file was given back.
func (h *handle) gaveOf(s span) bool {
	return h.gave.next(uint64(s.from/holeBlock), true) < uint64(s.to/holeBlock)
}

// reclaim gives back the blocks that a write which ran out of space has filled, behind the last page in use and in
// holes: the log may need them to record what makes room. Free pages that have never been holes keep their blocks.
// Not every file system can do it; the blocks are then used by the next write.
func (t *Tree) reclaim(h *handle) {
	tx, err := h.db.Begin(false)
	if err != nil {
		return
	}
	used := tx.Size()
	_ = tx.Rollback() // only fails for a transaction that has ended
	if size, _, err := h.stat(); err == nil && size > used {
		_ = t.opts.FS.PunchHole(t.opts.Path, h.file, used, size-used)
	}
	if t.Holes() == 0 {
		return
	}
	_ = guard("look for free pages in", t.opts.Path, func() error {
		f, err := h.freeSpace()
		if err != nil {
			return err
		}
		h.reads.committed(f.transaction)
		if _, old := h.reads.older(); old {
			return nil
		}
		for _, s := range f.spans(f.both, t.giving, h.blockSize()) {
			if n := dataIn(h.file, s); n > 0 && (n < s.len() || h.gaveOf(s)) {
				_ = t.opts.FS.PunchHole(t.opts.Path, h.file, s.from, s.len())
			}
		}
		return nil
	})
}
