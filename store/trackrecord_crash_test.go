package store

import (
	"fmt"
	"sync"
	"testing"
)

// etcd 3.5 could store how far the log was applied apart from what was applied. After a
// crash under load such entries were passed over: data was missing, and the revision was
// lower than on other members.
func TestEtcd13766CrashUnderLoad(t *testing.T) {
	for round := range 6 {
		c := newCutStore(t, uint64(round), 2000) // checkpoints go on all the time
		c.sim.CrashAt(c.sim.Ops() + 60 + 17*round)
		type write struct {
			key, value string
			rev        int64
		}
		var mu sync.Mutex
		var acked []write
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := 0; ; i++ {
					x := write{key: fmt.Sprintf("w%d/%d", w, i%7), value: fmt.Sprintf("%0100d", i)}
					rev, err := do(c.Store, putOp(x.key, x.value))
					if err != nil {
						c.cutOff(err)
						return
					}
					x.rev = rev
					mu.Lock()
					acked = append(acked, x)
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		_ = c.Close()
		s := c.afterCut()
		for _, x := range acked {
			res, kvs, err := read(s, &RangeRequest{KeyRange: single(x.key), Revision: x.rev})
			must(t, err)
			if len(kvs) != 1 || string(kvs[0].Value) != x.value || kvs[0].ModRevision != x.rev || res.Revision < x.rev {
				t.Fatalf("round %d: %s of revision %d is %v; the store is at %d", round, x.key, x.rev, kvs, res.Revision)
			}
		}
		if s.mem.changes.len() != int(s.Revision()-1) {
			t.Errorf("round %d: %d changes up to revision %d", round, s.mem.changes.len(), s.Revision())
		}
	}
}

// A single etcd answered a write when it was applied, before it was in the log on the disk.
func TestEtcd14370AcknowledgedWriteSurvivesPowerCut(t *testing.T) {
	t.Run("answered is durable", func(t *testing.T) {
		c := newCutStore(t, 1, 1<<20)
		for i := range 12 {
			value := fmt.Sprint(i)
			rev := put(t, c.Store, "a", value)
			s := c.afterCut()
			wantValue(t, s, "a", value)
			if s.Revision() != rev {
				t.Errorf("revision %d, it was %d", s.Revision(), rev)
			}
			must(t, s.Close())
		}
		must(t, c.Close())
	})
	t.Run("not durable is not shown", func(t *testing.T) {
		fs := newFaultFS()
		s := openStore(t, Options{Dir: t.TempDir(), FS: fs})
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: everything})
		next(t, w)
		g := newGate(nil)
		fs.set(func(f *faultFS) { f.sync = g.wait })
		answered := make(chan error, 1)
		go func() {
			_, err := do(s, putOp("a", "1"))
			answered <- err
		}()
		select {
		case <-g.arrived:
		case err := <-answered:
			t.Fatalf("answered without a sync of the log: %v", err)
		}
		select {
		case <-answered:
			t.Error("answered while the log is being synced")
		default:
		}
		wantNoKey(t, s, "a")
		nothing(t, w)
		fs.set(func(f *faultFS) { f.sync = nil })
		close(g.open)
		must(t, <-answered)
		wantValue(t, s, "a", "1")
		next(t, w)
	})
}

// etcd 3.5 stored in the midst of a defragmentation what it had applied, but not how far that
// was. After a crash it applied the rest of the log once more: revisions were counted twice.
func TestEtcd14685CrashInDefragmentation(t *testing.T) {
	var rev int64
	var hash uint32
	life := func(c *cutStore) {
		for i := range 30 {
			put(c.t, c.Store, fmt.Sprint("k", i%9), fmt.Sprintf("%0300d", i))
		}
		must(c.t, c.Checkpoint(bg))
		for i := range 5 { // in the log only
			rev = put(c.t, c.Store, "tail", fmt.Sprint(i))
		}
		h, err := c.HashKV(bg, 0)
		must(c.t, err)
		hash = h.Hash
	}
	cutWithin(t, life, func(c *cutStore) { c.cutOff(c.Defragment(bg)) }, func(t *testing.T, s *Store) {
		h, err := s.HashKV(bg, 0)
		must(t, err)
		if s.Revision() != rev || h.Hash != hash {
			t.Errorf("revision %d and hash %08x, before the crash %d and %08x", s.Revision(), h.Hash, rev, hash)
		}
		wantValue(t, s, "tail", "4")
		if got := put(t, s, "tail", "5"); got != rev+1 {
			t.Errorf("the next revision is %d, want %d", got, rev+1)
		}
	})
}

// etcd works out its revision from the records that are left. When the newest ones were
// tombstones, and a crash came after a compaction had removed them and before it was noted as
// finished, the revision fell, and was given to other changes.
func TestEtcd17780CompactionAndRestart(t *testing.T) {
	var rev int64
	life := func(c *cutStore) {
		for i := range 8 {
			put(c.t, c.Store, fmt.Sprint("k", i), "1")
		}
		for i := range 4 {
			del(c.t, c.Store, single(fmt.Sprint("k", i)))
		}
		// The newest revision has nothing but tombstones.
		rev = del(c.t, c.Store, between("k4", "k7"))
		must(c.t, c.Checkpoint(bg))
	}
	compacted := false
	last := func(c *cutStore) {
		_, err := c.Compact(bg, rev, true)
		compacted = err == nil
		c.cutOff(err)
	}
	cutWithin(t, life, last, func(t *testing.T, s *Store) {
		s.compact.wait()
		if s.Revision() != rev {
			t.Fatalf("revision %d, it was %d", s.Revision(), rev)
		}
		if compacted {
			_, _, err := read(s, &RangeRequest{KeyRange: everything, Revision: rev - 1})
			wantErr(t, err, ErrCompacted)
		}
		wantNoKey(t, s, "k3")
		wantNoKey(t, s, "k6")
		wantValue(t, s, "k7", "1")
		// Once more, with nothing left that has the revision.
		rev := put(t, s, "last", "")
		rev = max(rev, del(t, s, single("last")))
		compactTo(t, s, rev)
		s = reopen(t, s)
		s.compact.wait()
		if got := put(t, s, "k8", ""); got != rev+1 {
			t.Errorf("the next revision is %d, want %d", got, rev+1)
		}
	})
}
