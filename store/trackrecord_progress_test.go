package store

import (
	"fmt"
	"strings"
	"testing"
)

// etcd answered a client's question for progress beside the queue of events: it promised
// revisions whose events were still waiting.
func TestEtcd15220ProgressAfterEvents(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: single("a")})
	watch(t, w, WatchRequest{KeyRange: single("b"), Progress: true})
	put(t, s, "a", "1")
	put(t, s, "b", "2")
	w.RequestProgress()
	put(t, s, "a", "3")
	w.RequestProgress()
	wantEvents(t, "synced", drain(t, w), "2 PUT a", "3 PUT b", "progress 3", "4 PUT a", "progress 4")

	// A watch that is behind makes all promises impossible, those with its own ID as well.
	watch(t, w, WatchRequest{KeyRange: single("a"), Start: 2, Progress: true})
	w.RequestProgress()
	s.hub.mu.Lock()
	for _, x := range w.watchers {
		x.noted = x.synced // the one that is behind has had no event
	}
	behind := w.tellProgress()
	s.hub.mu.Unlock()
	if behind {
		t.Error("a watch that is behind is told of progress")
	}
	wantEvents(t, "behind", drain(t, w), "2 PUT a", "4 PUT a")
	w.RequestProgress()
	wantEvents(t, "caught up", drain(t, w), "progress 4")
}

// etcd put off a question for progress while a watch was catching up, until its next event: a
// watch of a quiet key was never answered.
func TestEtcd17507ProgressOfAQuietWatch(t *testing.T) {
	s := testStore(t)
	ops := make([]Op, 512)
	for i := range ops {
		ops[i] = putOp(fmt.Sprint("busy/", i), "x")
	}
	for s.mem.changes.len() <= catchUpScan { // more than is looked at in one go
		_, err := do(s, ops...)
		must(t, err)
	}
	for _, start := range []int64{2, 3, s.Revision()} {
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: single("quiet"), Start: start})
		wantEvents(t, "no event", drain(t, w))
		w.RequestProgress()
		wantEvents(t, fmt.Sprint("from ", start), drain(t, w), fmt.Sprint("progress ", s.Revision()))
		put(t, s, "busy", "x")
		w.RequestProgress()
		wantEvents(t, fmt.Sprint("from ", start), drain(t, w), fmt.Sprint("progress ", s.Revision()))
	}
}

// A watch of etcd that began in the future got events, and progress, of revisions below its start.
func TestEtcd20221FutureStart(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "2")
	w := watchStream(t, s)
	const start = 6
	watch(t, w, WatchRequest{KeyRange: everything, Start: start, Progress: true})
	drain(t, w)
	for s.Revision() < start-1 {
		put(t, s, "a", "too early")
		w.RequestProgress()
		s.hub.tellProgress()
		s.hub.tellProgress() // the first one only notes that there was no event
		wantEvents(t, fmt.Sprint("at revision ", s.Revision()), drain(t, w))
	}
	put(t, s, "a", "6")
	w.RequestProgress()
	wantEvents(t, "reached", drain(t, w), "6 PUT a", "progress 6")
	s.hub.tellProgress()
	s.hub.tellProgress()
	wantEvents(t, "reached", drain(t, w), "progress 6")

	// The same over a restart, as a client resumes its watch.
	s = reopen(t, s)
	w = watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, Start: 8})
	put(t, s, "a", "too early")
	put(t, s, "b", "8")
	wantEvents(t, "after a restart", drain(t, w), "8 PUT b")
}

// kine sent no progress to a watch that begins after a list, as all of Kubernetes' watches do,
// until there was a write. Here, as in etcd since 3.5.23, it comes as soon as any write has
// reached the start; a lower one would be what TestEtcd20221FutureStart forbids.
func TestKine543ProgressOfAWatchAfterAList(t *testing.T) {
	s := testStore(t)
	put(t, s, "a/1", "")
	res, _, err := read(s, &RangeRequest{KeyRange: between("a/", "a0")})
	must(t, err)
	w := watchStream(t, s)
	id := watch(t, w, WatchRequest{KeyRange: between("a/", "a0"), Start: res.Revision + 1, Progress: true})
	drain(t, w)
	for range 3 {
		rev := put(t, s, "elsewhere", "")
		w.RequestProgress()
		wantEvents(t, "asked for", drain(t, w), fmt.Sprint("progress ", rev))
		s.hub.tellProgress()
		s.hub.tellProgress()
		if m := next(t, w); m.Kind != WatchProgress || m.ID != id || m.Revision != rev {
			t.Errorf("unasked: got %+v, want progress %d", m, rev)
		}
		drain(t, w)
	}
}

// kine tested with a message of revision 0 whether a watch was synced, and this message could get
// out to the client when a large one was under way; the stream then stood still.
func TestKine568ProgressNeverFalls(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: single("a"), PrevKV: true, Progress: true})
	large := strings.Repeat("x", streamQueueBytes/2)
	events, promised := int64(0), int64(0)
	for i := range 12 {
		put(t, s, "a", large) // the third one that is not read makes the watch fall behind
		w.RequestProgress()
		s.hub.tellProgress()
		for n := 0; n < i; n++ {
			m, ok, err := w.Next()
			must(t, err)
			if !ok {
				break
			}
			w.Sent(m)
			m = whole(m)
			switch m.Kind {
			case WatchEvents:
				for _, e := range m.Events {
					if e.Revision() <= max(events, promised) {
						t.Fatalf("event %d after event %d and progress %d", e.Revision(), events, promised)
					}
					events = e.Revision()
				}
			case WatchProgress:
				if m.Revision < max(1, promised) || m.Revision > events {
					t.Fatalf("progress %d after event %d and progress %d", m.Revision, events, promised)
				}
				promised = m.Revision
			}
		}
	}
	if drain(t, w); len(w.behind) > 0 {
		t.Error("the watch is still behind")
	}
	w.RequestProgress()
	wantEvents(t, "at the end", drain(t, w), fmt.Sprint("progress ", s.Revision()))
}
