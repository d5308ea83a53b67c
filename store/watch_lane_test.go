package store

import (
	"bytes"
	"slices"
	"testing"
)

// longHistory is a store with many changes, which are in the tree.
func longHistory(t *testing.T) *Store {
	t.Helper()
	s := testStore(t)
	value := string(bytes.Repeat([]byte("v"), 2000))
	for range 100 {
		var ops []Op
		for i := range 10 {
			ops = append(ops, putOp(string(rune('a'+i)), value))
		}
		for range 2 {
			_, err := do(s, ops...)
			must(t, err)
		}
	}
	must(t, s.Checkpoint(bg))
	return s
}

// past returns the next message from the history; false if the watcher has caught up.
func past(t *testing.T, w *WatchStream) (WatchMessage, bool) {
	t.Helper()
	for {
		m, ok, err := w.Next()
		must(t, err)
		if !ok {
			return m, false
		}
		w.Sent(m)
		if len(m.Framed) > 0 {
			return m, true
		}
	}
}

func watchersFrom(t *testing.T, s *Store, starts ...int64) (out []*WatchStream) {
	t.Helper()
	for _, start := range starts {
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: everything, Start: start})
		out = append(out, w)
	}
	return out
}

// allPast reads all histories in turns and returns what each one got, and how many chunks were made for it.
func allPast(t *testing.T, streams []*WatchStream) (got [][]byte, chunks int) {
	t.Helper()
	got = make([][]byte, len(streams))
	seen := make(map[*historyChunk]bool)
	for more := true; more; {
		more = false
		for i, w := range streams {
			if m, ok := past(t, w); ok {
				got[i] = append(got[i], m.Framed...)
				seen[m.chunk] = true
				m.Release()
				more = true
			}
		}
	}
	return got, len(seen)
}

func (h *history) wantEmpty(t *testing.T) {
	t.Helper()
	if len(h.lanes) != 0 || h.buffers.inUse.Load() != 0 {
		t.Errorf("nobody is behind, but %d lanes and %d buffers are kept", len(h.lanes), h.buffers.inUse.Load())
	}
}

// However many watchers want the same history, it is read once.
func TestWatchersBehindShareOneReading(t *testing.T) {
	s := longHistory(t)
	alone, chunks := allPast(t, watchersFrom(t, s, 2))
	got, shared := allPast(t, watchersFrom(t, s, slices.Repeat([]int64{2}, 20)...))
	if shared != chunks {
		t.Errorf("20 watchers made %d chunks, one makes %d", shared, chunks)
	}
	for i := range got {
		if !bytes.Equal(got[i], alone[0]) {
			t.Errorf("watcher %d got %d bytes, want %d", i, len(got[i]), len(alone[0]))
		}
	}
	s.hub.history.wantEmpty(t)
}

// Watchers that begin a little apart go on together from where they meet.
func TestWatchersThatBeginApartMeet(t *testing.T) {
	s := longHistory(t)
	starts := []int64{20, 10, 3, 2}
	_, chunks := allPast(t, watchersFrom(t, s, starts[0]))
	got, made := allPast(t, watchersFrom(t, s, starts...))
	if most := chunks + len(starts)*(len(starts)-1)/2; made > most { // each may read up to where every other began
		t.Errorf("%d chunks were made, want at most %d", made, most)
	}
	for i, start := range starts {
		alone, _ := allPast(t, watchersFrom(t, s, start))
		if !bytes.Equal(got[i], alone[0]) {
			t.Errorf("the watcher from %d got %d bytes, want %d", start, len(got[i]), len(alone[0]))
		}
	}
	s.hub.history.wantEmpty(t)
}

// Watchers whose events differ share nothing.
func TestWatchersThatDifferDoNotShare(t *testing.T) {
	s := longHistory(t)
	var streams []*WatchStream
	for _, req := range []WatchRequest{
		{KeyRange: everything}, {KeyRange: everything, PrevKV: true}, {KeyRange: everything, NoPut: true}, {KeyRange: single("a")},
	} {
		w := watchStream(t, s)
		req.Start = 2
		watch(t, w, req)
		streams = append(streams, w)
	}
	got, _ := allPast(t, streams)
	if len(got[0]) == 0 || len(got[1]) < 2*len(got[0])*9/10 || len(got[2]) != 0 || len(got[3]) != len(got[0])/10 {
		t.Errorf("got %d, %d, %d and %d bytes", len(got[0]), len(got[1]), len(got[2]), len(got[3]))
	}
}

// A watcher that stops reading is left behind by the others, and gets all when it goes on.
func TestStalledWatcherLeavesTheLane(t *testing.T) {
	s := longHistory(t)
	streams := watchersFrom(t, s, 2, 2)
	first, ok := past(t, streams[1])
	if !ok {
		t.Fatal("there is no history")
	}
	alone, _ := allPast(t, streams[:1])
	rest, _ := allPast(t, streams[1:])
	if got := append(first.Framed, rest[0]...); !bytes.Equal(got, alone[0]) {
		t.Errorf("got %d bytes, want %d", len(got), len(alone[0]))
	}
	first.Release()
	s.hub.history.wantEmpty(t)
}

// Messages that nobody reads take a bounded part of the memory beside a small one each.
func TestUnreadHistoryIsBounded(t *testing.T) {
	const many = 300
	s := longHistory(t)
	sum := 0
	var unread []WatchMessage
	for i := range many {
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: between("a", "z"+string(rune('a'+i))), Start: 2}) // each its own
		m, ok := past(t, w)
		if !ok {
			t.Fatal("there is no history")
		}
		sum += cap(m.Framed)
		unread = append(unread, m)
	}
	if limit := pooledChunks*pooledSize + many*pooledFrom*3/2; sum > limit {
		t.Errorf("%d unread messages take %d bytes, want at most %d", many, sum, limit)
	}
	if n := len(s.hub.history.lanes); n > maxLanes {
		t.Errorf("%d lanes", n)
	}
	for i := range unread {
		unread[i].Release()
	}
}
