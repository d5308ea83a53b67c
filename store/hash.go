package store

import (
	"context"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/tarn-kv/tarn/store/tree"
)

// HashResult is a hash over the records of the key space.
type HashResult struct {
	Hash            uint32
	Revision        int64 // of the store
	HashRevision    int64 // the records up to here are in the hash
	CompactRevision int64 // of the store when the hash was made, -1 if never compacted
}

// storedHashes are the hashes made by the last compactions, over the records
// before they were removed: what another member that has not compacted yet would answer.
type storedHashes struct {
	mu   sync.Mutex
	list []HashResult
}

const storedHashLimit = 10

func (h *storedHashes) get(rev int64) (HashResult, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.list, func(r HashResult) bool { return r.HashRevision == rev })
	if i < 0 {
		return HashResult{}, false
	}
	return h.list[i], true
}

// keep makes and keeps the hash of a compaction whose records are still there.
func (h *storedHashes) keep(s *Store, rev, prior int64) {
	sum, err := s.hashUpTo(context.Background(), rev, prior, s.changedAt(rev))
	if err != nil {
		s.log.Warn("hash of a compaction not made", "revision", rev, "error", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, HashResult{Hash: sum, HashRevision: rev, CompactRevision: prior})
	if len(h.list) > storedHashLimit {
		h.list = slices.Delete(h.list, 0, len(h.list)-storedHashLimit)
	}
}

// Hash returns etcd's hash over all buckets of the file, and the revision that it is of.
func (s *Store) Hash(ctx context.Context) (hash uint32, rev int64, err error) {
	if err := s.Checkpoint(ctx); err != nil {
		return 0, 0, err
	}
	hash, err = s.tree.Hash(ctx)
	return hash, s.Revision(), err
}

// HashKV returns etcd's hash over the records up to rev; rev ≤ 0 means the current
// revision. For the revision of one of the last ten compactions since the start it is the hash from
// before that compaction, even if the store has been compacted beyond it since.
//
// ErrCompacted and ErrFutureRev are returned when rev can not be read.
func (s *Store) HashKV(ctx context.Context, rev int64) (HashResult, error) {
	if err := s.compact.waitIdle(ctx, s.Failed()); err != nil {
		return HashResult{}, err
	}
	if rev > 0 {
		if r, ok := s.hashes.get(rev); ok {
			r.Revision = s.Revision()
			return r, nil
		}
	}
	p, current, err := s.pinAt(rev)
	if err != nil {
		return HashResult{}, err
	}
	defer p.Close()
	compacted := s.compacted.Load()
	sum, err := s.hashUpTo(ctx, p.rev, compacted, false)
	return HashResult{Hash: sum, Revision: current, HashRevision: p.rev, CompactRevision: compacted}, err
}

// changedAt reports whether a record has this very revision.
func (s *Store) changedAt(rev int64) bool {
	s.mem.mu.RLock()
	defer s.mem.mu.RUnlock()
	i := s.mem.changesFrom(rev)
	return i < s.mem.changes.len() && s.mem.changes.at(i).main == rev
}

// hashUpTo hashes the records up to rev as a store does that is compacted at
// compacted, whatever of the compaction is done. What is superseded below is left out, but,
// as in etcd, only if there is anything that is kept; the caller may know of something beside
// the live keys (the tombstones at a compaction's revision).
func (s *Store) hashUpTo(ctx context.Context, rev, compacted int64, kept bool) (uint32, error) {
	keep, any, err := s.liveBelow(ctx, rev, compacted)
	if err != nil {
		return 0, err
	}
	any = any || kept
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	h.Write([]byte("key"))
	var key []byte
	err = s.eachRecord(ctx, rev, func(r Revision, dead bool, value []byte) {
		if r.Main <= compacted {
			if _, kept := slices.BinarySearchFunc(keep, r, Revision.Compare); any && !kept {
				return
			}
		}
		if dead && r.Main == compacted {
			return
		}
		key = r.AppendKey(key[:0], dead)
		h.Write(key)
		h.Write(value)
	})
	return h.Sum32(), err
}

// liveBelow returns, ascending, the records that a read at rev sees and that are not
// above the compact revision, and whether such a read sees anything at all.
func (s *Store) liveBelow(ctx context.Context, rev, compacted int64) (keep []Revision, any bool, err error) {
	r := &Reader{s: s, pin: pin{rev: rev}}
	sc := r.Scan(KeyRange{Key: []byte{0}, End: []byte{0}})
	var items []Item
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		items = sc.Next(items[:0], scanStep, 1<<62)
		if len(items) == 0 {
			break
		}
		any = true
		for i := range items {
			if items[i].Rev.Main <= compacted {
				keep = append(keep, items[i].Rev)
			}
		}
	}
	// For etcd what has no key is a key as well, an empty one.
	for i := len(s.mem.marks) - 1; i >= 0; i-- {
		if m := s.mem.marks[i]; m.Main <= rev {
			any = true
			if m.Main <= compacted {
				keep = append(keep, m)
			}
			break
		}
	}
	slices.SortFunc(keep, Revision.Compare)
	return keep, any, nil
}

// eachRecord calls each for the records up to rev in order, first those of the
// tree, then those of the tail. The value is valid during the call.
func (s *Store) eachRecord(ctx context.Context, rev int64, each func(r Revision, tombstone bool, value []byte)) error {
	next := Revision{}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		moves := s.ckpt.moves.Load()
		n, err := s.treeChunk(&next, rev, each)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		// The end of the tree. What is left is in the tail, if no checkpoint
		// has moved it meanwhile.
		if s.tailChunk(&next, rev, moves, each) {
			return nil
		}
	}
}

// treeChunk reads a bounded number of records, so that no read transaction
// of the tree is open for long.
func (s *Store) treeChunk(next *Revision, rev int64, each func(Revision, bool, []byte)) (n int, err error) {
	v := s.tree.View()
	defer v.Close()
	err = v.Scan(*next, func(r tree.Revision, dead bool, value []byte) bool {
		if r.Main > rev || n == scanStep {
			return false
		}
		each(r, dead, value)
		n++
		*next = Revision{Main: r.Main, Sub: r.Sub + 1}
		return true
	})
	return n, err
}

// tailChunk goes on in the tail and reports whether that was all. It does nothing
// if a checkpoint has come between.
func (s *Store) tailChunk(next *Revision, rev int64, moves uint64, each func(Revision, bool, []byte)) (end bool) {
	type found struct {
		r    Revision
		dead bool
		v    []byte
	}
	var chunk []found
	m := &s.mem
	m.mu.RLock()
	if s.ckpt.moves.Load() != moves {
		m.mu.RUnlock()
		return false
	}
	i := m.tail.search(func(t *tailRecord) bool {
		return t.main > next.Main || t.main == next.Main && int64(t.sub) >= next.Sub
	})
	end = true
	for ; i < m.tail.len(); i++ {
		t := m.tail.at(i)
		if t.main > rev {
			break
		}
		if len(chunk) == scanStep {
			end = false
			break
		}
		if r := t.entry.find(t.main, t.sub); r != nil {
			chunk = append(chunk, found{r.rev(), r.tombstone(), t.value})
		}
		*next = Revision{Main: t.main, Sub: int64(t.sub) + 1}
	}
	m.mu.RUnlock()
	for _, c := range chunk {
		each(c.r, c.dead, c.v)
	}
	return end
}
