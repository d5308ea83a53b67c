package store

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// next returns a stream's next message; it fails the test if there is none.
func next(t *testing.T, w *WatchStream) WatchMessage {
	t.Helper()
	m, ok, err := w.Next()
	must(t, err)
	if !ok {
		t.Fatal("there is no message")
	}
	w.Sent(m)
	return whole(m)
}

// whole returns a message with its events as Events, also those from the history.
func whole(m WatchMessage) WatchMessage {
	m.Events, m.Framed = m.List(), nil
	return m
}

func nothing(t *testing.T, w *WatchStream) {
	t.Helper()
	m, ok, err := w.Next()
	must(t, err)
	if ok {
		t.Fatalf("unexpected message %+v", m)
	}
}

func watch(t *testing.T, w *WatchStream, req WatchRequest) int64 {
	t.Helper()
	id, err := w.Create(req)
	must(t, err)
	return id
}

func watchStream(t *testing.T, s *Store) *WatchStream {
	w := s.NewWatchStream(func() {})
	t.Cleanup(w.Close)
	return w
}

// A watcher that never reads costs a bounded number of bytes, and gets everything when it reads
// at last (WCH-29).
func TestUnreadWatcher(t *testing.T) {
	const puts, size = 200, 100_000
	s := testStore(t)
	w, quick := watchStream(t, s), watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, PrevKV: true})
	watch(t, quick, WatchRequest{KeyRange: everything})
	next(t, quick)
	for i := range puts {
		put(t, s, "a", string(bytes.Repeat([]byte{byte(i)}, size)))
		if m := next(t, quick); len(m.Events) != 1 {
			t.Fatalf("the quick watcher got %+v", m)
		}
		if i == puts/2 {
			must(t, s.Checkpoint(bg))
		}
	}
	s.hub.mu.Lock()
	queued, slow := w.bytes, len(w.behind)
	s.hub.mu.Unlock()
	if queued > streamQueueBytes || slow != 1 {
		t.Errorf("%d bytes are queued, %d watchers are behind", queued, slow)
	}
	next(t, w)
	for i := 0; i < puts; {
		m, total := next(t, w), 0
		for _, e := range m.Events {
			ev := decodeEvent(t, e, true)
			if len(ev.Kv.Value) != size || ev.Kv.Value[0] != byte(i) || (i > 0) != (ev.PrevKv != nil) || i > 0 && ev.PrevKv.Value[0] != byte(i-1) {
				t.Fatalf("event %d is wrong", i)
			}
			total += e.Size(true)
			i++
		}
		if total > catchUpBytes+3*size {
			t.Errorf("a message of %d bytes", total)
		}
	}
	nothing(t, w)
}

// The size of a message is bounded also if the values have to be read from the tree.
func TestCatchUpMessageSize(t *testing.T) {
	const size = 100_000
	s := testStore(t)
	for range 30 {
		put(t, s, "a", string(make([]byte, size)))
	}
	must(t, s.Checkpoint(bg))
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, Start: 2, PrevKV: true})
	next(t, w)
	for n := 0; n < 30; {
		m := next(t, w)
		n += len(m.Events)
		if len(m.Events)*2*size > catchUpBytes+3*size {
			t.Fatalf("%d events of %d bytes in one message", len(m.Events), 2*size)
		}
	}
}

// While a revision is being published, a watcher that is behind gets no more than the others
// have: else a progress message could be lower than events that came before it.
func TestCatchUpEndsWhereOthersAre(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	s.hub.mu.Lock()
	s.hub.rev = 2
	s.hub.mu.Unlock()
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, Start: 2})
	next(t, w)
	if m := next(t, w); m.Revision != 2 || len(m.Events) != 1 {
		t.Errorf("got %+v, want the event of revision 2", m)
	}
	nothing(t, w)
	w.RequestProgress()
	if m := next(t, w); m.Kind != WatchProgress || m.Revision != 2 {
		t.Errorf("got %+v, want progress 2", m)
	}
	s.hub.publish(2, 3)
	if m := next(t, w); m.Revision != 3 || len(m.Events) != 1 {
		t.Errorf("got %+v, want the event of revision 3", m)
	}
	nothing(t, w)
}

// WCH-40: a watch that wants progress is told the revision with its own ID while it has no events.
func TestPeriodicProgress(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s)
	a := watch(t, w, WatchRequest{KeyRange: single("a"), Progress: true})
	watch(t, w, WatchRequest{KeyRange: single("b")})
	future := watch(t, w, WatchRequest{KeyRange: single("c"), Progress: true, Start: 3})
	for range 3 {
		next(t, w)
	}
	tick := func(want map[int64]int64) {
		t.Helper()
		s.hub.tellProgress()
		for range want {
			if m := next(t, w); m.Kind != WatchProgress || want[m.ID] != m.Revision {
				t.Errorf("got %+v, want one of %v", m, want)
			}
		}
		nothing(t, w)
	}
	tick(map[int64]int64{a: 1}) // the first tick too: no interval is without a word
	put(t, s, "a", "")
	next(t, w)
	tick(nil) // a had an event; c begins in the future
	put(t, s, "b", "")
	next(t, w)
	tick(map[int64]int64{a: 3, future: 3})
	w.Cancel(a)
	w.Cancel(future)
	next(t, w)
	next(t, w)
	tick(nil)
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.hub.progress != nil {
		t.Error("the timer runs though nobody wants progress")
	}
}

// The timer of WCH-40 runs by itself.
func TestProgressTimer(t *testing.T) {
	s := openStore(t, Options{Dir: t.TempDir(), ProgressInterval: 500 * time.Millisecond})
	got := make(chan struct{}, 100)
	w := s.NewWatchStream(func() { got <- struct{}{} })
	defer w.Close()
	watch(t, w, WatchRequest{KeyRange: single("a"), Progress: true})
	<-got
	next(t, w)
	nothing(t, w)
	<-got
	if m := next(t, w); m.Kind != WatchProgress || m.ID != 0 || m.Revision != 1 {
		t.Errorf("got %+v", m)
	}
}

// WCH-32: an ID that a compaction has canceled is in use until the client cancels it, and
// does not hold up progress (V-7).
func TestCanceledByCompaction(t *testing.T) {
	s := testStore(t)
	for i := range 4 {
		put(t, s, "a", fmt.Sprint(i))
	}
	compactTo(t, s, 5)
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, ID: 7, Start: 4})
	watch(t, w, WatchRequest{KeyRange: everything, ID: 8})
	next(t, w)
	next(t, w)
	if m := next(t, w); m.Kind != WatchCanceled || m.ID != 7 || m.CompactRevision != 5 || m.Revision != 0 {
		t.Errorf("got %+v", m)
	}
	w.RequestProgress()
	if m := next(t, w); m.Kind != WatchProgress || m.ID != ProgressID {
		t.Errorf("got %+v", m)
	}
	_, err := w.Create(WatchRequest{KeyRange: everything, ID: 7})
	wantErr(t, err, ErrWatchIDInUse)
	if !w.Cancel(7) || w.Cancel(7) {
		t.Error("the first cancel is acknowledged, the second is not")
	}
	if m := next(t, w); m.Kind != WatchCanceled || m.ID != 7 || m.CompactRevision != 0 || m.Revision != 5 {
		t.Errorf("got %+v", m)
	}
	watch(t, w, WatchRequest{KeyRange: everything, ID: 7})
}
