package store

import (
	"fmt"
	"testing"
)

func TestGoldenWatchAndCompaction(t *testing.T) {
	s := testStore(t)
	r := put(t, s, "cc", "1")
	put(t, s, "cc", "2")
	put(t, s, "cc", "3")
	del(t, s, single("cc"))
	put(t, s, "cc", "4")
	compactTo(t, s, r+3)
	begin := func(start int64) *WatchStream {
		t.Helper()
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: single("cc"), Start: start, PrevKV: true})
		if m := next(t, w); m.Kind != WatchCreated || m.Revision != r+4 {
			t.Errorf("start %d: first message %+v", start, m)
		}
		return w
	}
	w := begin(r + 2)
	if m := next(t, w); m.Kind != WatchCanceled || m.CompactRevision != r+3 || m.Revision != 0 {
		t.Errorf("got %+v", m)
	}
	nothing(t, w)
	for start := r + 3; start <= r+4; start++ {
		w = begin(start)
		m := next(t, w)
		if m.Kind != WatchEvents || m.Revision != r+4 || int64(len(m.Events)) != r+5-start {
			t.Fatalf("start %d: got %+v", start, m)
		}
		for i, e := range m.Events {
			ev, rev := decodeEvent(t, e, true), start+int64(i)
			if ev.Kv.ModRevision != rev || ev.PrevKv != nil || e.IsDelete() != (rev == r+3) {
				t.Errorf("start %d: event %v", start, ev)
			}
		}
		if last := decodeEvent(t, m.Events[len(m.Events)-1], true); string(last.Kv.Value) != "4" || last.Kv.CreateRevision != r+4 || last.Kv.Version != 1 {
			t.Errorf("last event %v", last)
		}
		nothing(t, w)
	}
	_, err := w.Create(WatchRequest{KeyRange: single("cc"), Start: -1})
	wantErr(t, err, ErrCompacted)
	_, err = w.Create(WatchRequest{KeyRange: between("b", "a")}) // WCH-4
	wantErr(t, err, ErrEmptyRange)
	nothing(t, w)
}

func TestGoldenCatchUp(t *testing.T) {
	s := testStore(t)
	for i := range 2501 {
		op := putOp("u/1", fmt.Sprint(i))
		if i == 2500 {
			op = putOp("u/2", "")
		}
		// Nobody waits for the single ones: this is about what a watch gets.
		s.ride(func(b *batch) {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			x := &txn{s: s, b: b, now: s.head.revision}
			x.finish(x.run(&plan{succeeded: true, ops: []Op{op}}))
		})
	}
	must(t, s.flushAll())
	current := s.Revision()
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: between("u/", "u0"), Start: current - 2500})
	next(t, w)
	for _, n := range []int{1000, 1000, 501} {
		if m := next(t, w); len(m.Events) != n || m.Revision != current {
			t.Errorf("%d events, header %d, want %d and %d", len(m.Events), m.Revision, n, current)
		}
	}
	nothing(t, w)
}

func TestGoldenProgress(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s)
	answer := func(rev int64) {
		t.Helper()
		w.RequestProgress()
		if m := next(t, w); m.Kind != WatchProgress || m.ID != -1 || m.Revision != rev {
			t.Errorf("got %+v, want progress %d", m, rev)
		}
	}
	w.RequestProgress()
	nothing(t, w)
	watch(t, w, WatchRequest{KeyRange: single("a")})
	next(t, w)
	answer(1)
	put(t, s, "b", "")
	answer(2)
	future := watch(t, w, WatchRequest{KeyRange: single("a"), Start: 52})
	next(t, w)
	w.RequestProgress()
	nothing(t, w)
	w.Cancel(future)
	if m := next(t, w); m.Kind != WatchCanceled || m.ID != future || m.Revision != 2 {
		t.Errorf("got %+v", m)
	}
	answer(2)
	if w.Cancel(future) {
		t.Error("a watch was canceled twice")
	}
	// Unsynced: WCH-43.
	past := watch(t, w, WatchRequest{KeyRange: single("b"), Start: 2})
	w.RequestProgress()
	if m := next(t, w); m.Kind != WatchCreated || m.ID != past {
		t.Errorf("got %+v", m)
	}
	if m := next(t, w); m.Kind != WatchEvents {
		t.Errorf("got %+v", m)
	}
	nothing(t, w)
	answer(2)
}

func TestGoldenWatchIDs(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s)
	for _, c := range []struct{ want, id int64 }{{0, 0}, {0, 1}, {0, 2}, {5, 5}, {0, 3}} {
		if id := watch(t, w, WatchRequest{KeyRange: single("a"), ID: c.want}); id != c.id {
			t.Errorf("asked for %d, got ID %d, want %d", c.want, id, c.id)
		}
	}
	_, err := w.Create(WatchRequest{KeyRange: single("a"), ID: 5})
	wantErr(t, err, ErrWatchIDInUse)
	w.Cancel(5)
	watch(t, w, WatchRequest{KeyRange: single("a"), ID: 5})
	for _, want := range []int64{4, 6} { // 5 is in use
		if id := watch(t, w, WatchRequest{KeyRange: single("a")}); id != want {
			t.Errorf("got ID %d, want %d", id, want)
		}
	}
}
