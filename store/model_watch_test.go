package store

import (
	"bytes"
	"slices"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// modelStream is a stream and what its client should get.
type modelStream struct {
	w      *WatchStream
	called atomic.Bool // ready was called since Next found nothing
	empty  bool        // Next found nothing
	nextID int64
	// watches has, per ID, those that did not end yet for the client; the last
	// one is the one that a new message to the server is meant for.
	watches map[int64][]*modelWatch
	answers []int64 // revisions of progress answers to come
	unsent  []WatchMessage
}

// modelWatch is one watch of a client.
type modelWatch struct {
	WatchRequest
	next      int64 // every event below has come
	tooOld    bool  // began below the compact revision
	created   bool  // WatchCreated has come
	canceled  bool  // the client has canceled it
	compacted bool  // the compaction's cancel has come
}

func (st *modelStream) taken(id int64) bool {
	l := st.watches[id]
	return len(l) > 0 && !l[len(l)-1].canceled
}

// active counts the watches that the store still serves.
func (st *modelStream) active() (n int) {
	for _, l := range st.watches {
		for _, w := range l {
			if !w.canceled && !w.compacted {
				n++
			}
		}
	}
	return n
}

func (r *modelRunner) stream() *modelStream {
	i := r.rnd.IntN(len(r.streams))
	if r.streams[i] == nil {
		st := &modelStream{watches: map[int64][]*modelWatch{}}
		st.w = r.s.NewWatchStream(func() { st.called.Store(true) })
		st.called.Store(true)
		r.streams[i] = st
	}
	return r.streams[i]
}

func (r *modelRunner) stepWatch() {
	st := r.stream()
	req := WatchRequest{KeyRange: r.keyRange(), Start: r.revision(), PrevKV: r.chance(2), NoPut: r.chance(8), NoDelete: r.chance(8)}
	if r.chance(4) {
		req.ID = r.rnd.Int64N(6)
	}
	if r.chance(5) {
		req.Start = r.m.rev + 1 + r.rnd.Int64N(5)
	}
	r.logf("watch %q to %q %+v", req.Key, req.End, req)
	id, err := st.w.Create(req)
	var want error
	switch {
	case len(req.End) > 0 && req.End[0] != 0 && bytes.Compare(req.End, req.Key) <= 0:
		want = ErrEmptyRange
	case req.Start < 0:
		want = ErrCompacted
	case req.ID != 0 && st.taken(req.ID):
		want = ErrWatchIDInUse
	}
	if !r.sameErr("watch", err, want) {
		return
	}
	if req.ID == 0 {
		for st.taken(st.nextID) {
			st.nextID++
		}
		req.ID = st.nextID
		st.nextID++
	}
	r.equal("watch ID", id, req.ID)
	w := &modelWatch{WatchRequest: req, next: req.Start, tooOld: req.Start > 0 && req.Start < r.m.compacted}
	if req.Start == 0 {
		w.next = r.m.rev + 1
	}
	st.watches[id] = append(st.watches[id], w)
	r.mustBeReady(st)
}

func (r *modelRunner) mustBeReady(st *modelStream) {
	if st.empty && !st.called.Load() {
		r.failf("the stream has something to send, but ready was not called")
	}
}

func (r *modelRunner) stepCancel() {
	st, id := r.stream(), r.rnd.Int64N(6)
	r.logf("cancel %d", id)
	r.equal("watch was there", st.w.Cancel(id), st.taken(id))
	if st.taken(id) {
		l := st.watches[id]
		l[len(l)-1].canceled = true
		r.mustBeReady(st)
	}
}

// stepProgress asks for progress. Whether there must be an answer is known only of a
// stream that has got everything.
func (r *modelRunner) stepProgress() {
	st := r.stream()
	received := r.chance(2)
	if received {
		r.receive(st, 1<<30)
		st.sent()
	}
	r.logf("progress, all received %v", received)
	before := r.s.Counters()
	st.w.RequestProgress()
	after := r.s.Counters()
	answered := after.ProgressAnswered - before.ProgressAnswered
	r.equal("progress asked for", after.ProgressRequested-before.ProgressRequested, uint64(1))
	r.equal("progress dropped", after.ProgressDropped-before.ProgressDropped, 1-answered)
	want := st.active() > 0
	for _, l := range st.watches {
		for _, w := range l {
			want = want && (w.canceled || w.compacted || w.Start <= r.m.rev)
		}
	}
	if received || !want {
		r.equal("progress answered", answered == 1, want)
	}
	if answered == 1 {
		st.answers = append(st.answers, r.m.rev)
		r.mustBeReady(st)
	}
}

func (r *modelRunner) stepReceive() {
	n := 1 << 30
	if r.chance(2) {
		n = r.rnd.IntN(5)
	}
	r.receive(r.stream(), n)
}

func (r *modelRunner) stepCloseStream() {
	if i := r.rnd.IntN(len(r.streams)); r.streams[i] != nil {
		st := r.streams[i]
		r.logf("close a stream")
		st.w.Close()
		_, ok, err := st.w.Next()
		r.equal("message after close", ok, false)
		r.sameErr("next after close", err, ErrStopped)
		_, err = st.w.Create(WatchRequest{KeyRange: everything})
		r.sameErr("create after close", err, ErrStopped)
		r.streams[i] = nil
	}
}

// receive takes up to n messages off a stream.
func (r *modelRunner) receive(st *modelStream, n int) {
	for range n {
		m, ok, err := st.w.Next()
		r.noErr("next", err)
		if !ok {
			st.empty = true
			st.called.Store(false)
			r.checkAllCame(st)
			break
		}
		st.empty = false
		m = whole(m)
		r.logf("received %d of watch %d, header %d, compacted %d, %d events", m.Kind, m.ID, m.Revision, m.CompactRevision, len(m.Events))
		r.message(st, &m)
		st.unsent = append(st.unsent, m)
	}
	if r.chance(2) {
		st.sent()
	}
}

func (st *modelStream) sent() {
	for _, m := range st.unsent {
		st.w.Sent(m)
	}
	st.unsent = nil
}

func (r *modelRunner) message(st *modelStream, m *WatchMessage) {
	if m.Kind == WatchProgress {
		r.progress(st, m)
		return
	}
	l := st.watches[m.ID]
	if len(l) == 0 {
		r.failf("message for unknown watch %d", m.ID)
	}
	w := l[0]
	if (m.Kind != WatchCreated) != w.created {
		r.failf("message of kind %d, created %v", m.Kind, w.created)
	}
	switch {
	case m.Kind == WatchCreated:
		w.created = true
	case m.Kind == WatchEvents:
		r.events(w, m)
	case m.CompactRevision != 0:
		if w.next >= m.CompactRevision || w.compacted {
			r.failf("watch %d canceled by compaction %d, its next revision is %d", m.ID, m.CompactRevision, w.next)
		}
		r.equal("compact revision", m.CompactRevision, r.m.compacted)
		r.equal("cancel's revision", m.Revision, int64(0))
		w.compacted = true
	default:
		r.equal("watch was canceled", w.canceled, true)
		st.watches[m.ID] = slices.Delete(l, 0, 1)
	}
}

func (r *modelRunner) progress(st *modelStream, m *WatchMessage) {
	r.equal("progress ID", m.ID, int64(ProgressID))
	if len(st.answers) == 0 || st.answers[0] != m.Revision {
		r.failf("progress of revision %d, expected %d", m.Revision, st.answers)
	}
	st.answers = st.answers[1:]
	for id, l := range st.watches {
		if len(l) == 0 {
			continue
		}
		if w := l[0]; w.created && !w.canceled && !w.compacted && len(r.m.changes(w, m.Revision)) > 0 {
			r.failf("progress %d came before events of watch %d", m.Revision, id)
		}
	}
}

// checkAllCame is called when the store says that it has nothing for the stream.
func (r *modelRunner) checkAllCame(st *modelStream) {
	r.equal("progress answers to come", len(st.answers), 0)
	for id, l := range st.watches {
		for _, w := range l {
			r.equal("created", w.created, true)
			r.equal("canceled", w.canceled, false)
			r.equal("compacted", w.compacted || !w.tooOld, true)
			if !w.compacted && r.m.due(w) {
				r.failf("watch %d has not got its events from %d on", id, w.next)
			}
		}
	}
}

// checkReady finds a stream that should have been woken.
func (r *modelRunner) checkReady(st *modelStream) {
	if !st.empty {
		return
	}
	for _, l := range st.watches {
		for _, w := range l {
			if !w.canceled && !w.compacted && r.m.due(w) {
				r.mustBeReady(st)
			}
		}
	}
}

// decodeEvent reads an event and checks its size.
func (r *modelRunner) decodeEvent(e *Event, prev bool) *mvccpb.Event {
	r.equal("event's size", e.Size(prev), len(e.Encoded(prev)))
	return decodeEvent(r.t, e, prev)
}
