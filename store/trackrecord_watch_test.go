package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// drain reads a stream to its present end and returns the events as "revision TYPE key", and
// the revisions of its progress messages as "progress revision".
func drain(t *testing.T, w *WatchStream) (out []string) {
	t.Helper()
	for {
		m, ok, err := w.Next()
		must(t, err)
		if !ok {
			return out
		}
		w.Sent(m)
		m = whole(m)
		switch m.Kind {
		case WatchEvents:
			for _, e := range m.Events {
				out = append(out, showEvent(e))
			}
		case WatchProgress:
			out = append(out, fmt.Sprint("progress ", m.Revision))
		case WatchCanceled:
			out = append(out, fmt.Sprint("canceled ", m.CompactRevision))
		}
	}
}

func showEvent(e *Event) string {
	kind := "PUT"
	if e.IsDelete() {
		kind = "DELETE"
	}
	return fmt.Sprint(e.Revision(), " ", kind, " ", e.key)
}

func wantEvents(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got  %q\nwant %q", what, got, want)
	}
}

// A change to etcd's buffer of transactions left records in it twice, when a transaction had
// written keys in another order than theirs. Watchers that read from it got such an event twice.
func TestEtcd17247EventsComeOnce(t *testing.T) {
	s := testStore(t)
	quick := watchStream(t, s)
	watch(t, quick, WatchRequest{KeyRange: everything})
	var want, late []string
	catchUp := func(start int64) []string {
		w := watchStream(t, s)
		defer w.Close()
		watch(t, w, WatchRequest{KeyRange: everything, Start: start})
		return drain(t, w)
	}
	for i := range 12 {
		_, err := do(s, putOp("z", "1"), putOp("b", "1"), deleteOp(single("a")), putOp("y", "1"), deleteOp(single("c")), putOp("m", ""))
		must(t, err)
		_, err = do(s, putOp("c", "1"), deleteOp(single("z")), putOp("a", "2"))
		must(t, err)
		if i%4 == 1 { // the records move from memory to the tree
			must(t, s.Checkpoint(bg))
		}
		want = append(want, drain(t, quick)...)
		// One that takes up each time where it stopped, over the border of memory and tree.
		late = append(late, catchUp(int64(2+2*i))...)
	}
	// Two transactions a round; the first round finds nothing to delete.
	if n := 12*(4+3) + 11*2; len(want) != n {
		t.Fatalf("%d events, want %d: %q", len(want), n, want)
	}
	seen := map[string]bool{}
	for _, e := range want {
		if seen[e] {
			t.Errorf("the synced watcher got %s twice", e)
		}
		seen[e] = true
	}
	wantEvents(t, "resumed", late, want...)
	wantEvents(t, "from the beginning", catchUp(2), want...)
	s = reopen(t, s)
	wantEvents(t, "after a restart", catchUp(2), want...)
}

// A watcher of etcd that was too slow, and whose next event was compacted meanwhile, passed
// over it and went on with later events, instead of being canceled.
func TestEtcd17529SlowWatcherIsCanceledNotSkipped(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s) // many watches of one client that does not read
	for i := range 5 {
		watch(t, w, WatchRequest{KeyRange: everything, ID: int64(i + 1), PrevKV: true})
	}
	big := strings.Repeat("x", streamQueueBytes/20)
	for range 40 {
		put(t, s, "a", big)
	}
	compactTo(t, s, s.Revision()-5)
	compacted := s.Revision() - 5
	for range 5 {
		put(t, s, "a", "later")
	}
	next, canceled := map[int64]int64{}, 0
	for {
		m, ok, err := w.Next()
		must(t, err)
		if !ok {
			break
		}
		w.Sent(m)
		m = whole(m)
		switch m.Kind {
		case WatchCreated:
			next[m.ID] = 2
		case WatchCanceled:
			if m.CompactRevision != compacted || next[m.ID] >= compacted {
				t.Errorf("watch %d is canceled before revision %d with compact revision %d, want %d", m.ID, next[m.ID], m.CompactRevision, compacted)
			}
			delete(next, m.ID)
			canceled++
		default:
			for _, e := range m.Events {
				if e.Revision() != next[m.ID] {
					t.Fatalf("watch %d: event %d after %d", m.ID, e.Revision(), next[m.ID]-1)
				}
				next[m.ID]++
			}
		}
	}
	if canceled != 5 {
		t.Errorf("%d watches are canceled, want 5", canceled)
	}
}

// etcd removed a tombstone that lies exactly at the compact revision, so that a watch that began
// there, which is allowed, never learned of the deletion.
func TestEtcd18089TombstoneAtCompactRevision(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "1")
	put(t, s, "b", "1")
	rev := del(t, s, single("a"))
	put(t, s, "b", "2")
	must(t, s.Checkpoint(bg))
	compactTo(t, s, rev)
	look := func(when string) {
		t.Helper()
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: everything, Start: rev})
		wantEvents(t, when, drain(t, w), "4 DELETE a", "5 PUT b")
	}
	look("after the compaction")
	s = reopen(t, s)
	s.compact.wait()
	look("after a restart")
}

// etcd still lost that deletion when it was restarted before the compaction was finished: it
// then read the tombstone alone, and dropped it.
func TestEtcd19179TombstoneSurvivesAnUnfinishedCompaction(t *testing.T) {
	var rev int64
	life := func(c *cutStore) {
		for _, key := range []string{"a", "b", "c", "d"} {
			put(c.t, c.Store, key, "1")
		}
		rev = del(c.t, c.Store, single("a"))
		must(c.t, c.Checkpoint(bg))
	}
	last := func(c *cutStore) {
		_, err := c.Compact(bg, rev, true)
		c.cutOff(err)
		c.compact.wait()
	}
	cutWithin(t, life, last, func(t *testing.T, s *Store) {
		for range 2 {
			s.compact.wait()
			w := watchStream(t, s)
			watch(t, w, WatchRequest{KeyRange: everything, Start: rev})
			wantEvents(t, "watch from the compact revision", drain(t, w), fmt.Sprint(rev, " DELETE a"))
			s = reopen(t, s)
		}
	})
}

// etcd took −1 as the start of a watch as long as nothing was compacted. With such a watch, all
// watches that were catching up at the same time were taken to be synced, and lost events.
func TestEtcd20693NegativeStartRevision(t *testing.T) {
	s := testStore(t)
	w, other := watchStream(t, s), watchStream(t, s)
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	watch(t, other, WatchRequest{KeyRange: single("a"), Start: 2})
	watch(t, w, WatchRequest{KeyRange: single("a"), Start: 3})
	for _, start := range []int64{-1, -2, -1 << 63} {
		_, err := w.Create(WatchRequest{KeyRange: everything, Start: start})
		wantErr(t, err, ErrCompacted)
	}
	wantEvents(t, "other stream", drain(t, other), "2 PUT a", "3 PUT a")
	wantEvents(t, "same stream", drain(t, w), "3 PUT a")
	wantEvents(t, "nothing of theirs is left", drain(t, w))
}
