package store

import "go.etcd.io/etcd/api/v3/mvccpb"

// revisionChanges are the changes of one revision that a watch wants.
type revisionChanges struct {
	main    int64
	changes []modelRecord
}

// changes returns what a watch has not got yet up to a revision.
func (m *model) changes(w *modelWatch, upTo int64) (out []revisionChanges) {
	for _, c := range m.history {
		if c.main < w.next || c.main > upTo || !inRange(w.KeyRange, c.kv.Key) || c.dead && w.NoDelete || !c.dead && w.NoPut {
			continue
		}
		if n := len(out); n == 0 || out[n-1].main != c.main {
			out = append(out, revisionChanges{main: c.main})
		}
		last := &out[len(out)-1]
		last.changes = append(last.changes, c)
	}
	return out
}

// kept returns those of a revision's changes that no compaction removed. Only a change
// that the same transaction changed again can be gone while its revision can be read.
func (m *model) kept(g revisionChanges) (out []modelRecord) {
	for _, c := range g.changes {
		for _, s := range m.stored {
			if s.main == c.main && s.sub == c.sub {
				out = append(out, c)
			}
		}
	}
	return out
}

// due reports whether there are events that a watch must still get.
func (m *model) due(w *modelWatch) bool {
	for _, g := range m.changes(w, m.rev) {
		if len(m.kept(g)) > 0 {
			return true
		}
	}
	return false
}

// events compares a message with the changes that come next for its watch.
func (r *modelRunner) events(w *modelWatch, m *WatchMessage) {
	r.equal("watch began below the compact revision", w.tooOld, false)
	r.equal("events after a compaction's cancel", w.compacted, false)
	r.equal("prev_kv wanted", m.PrevKV, w.PrevKV)
	if len(m.Events) == 0 {
		r.failf("message without events")
	}
	first, last := m.Events[0].Revision(), m.Events[len(m.Events)-1].Revision()
	if m.Revision != r.m.rev && (first != last || m.Revision != first) {
		r.failf("header has revision %d, its events %d to %d", m.Revision, first, last)
	}
	rest := m.Events
	for _, g := range r.m.changes(w, r.m.rev) {
		if len(rest) == 0 {
			break
		}
		want := g.changes
		if kept := r.m.kept(g); g.main <= r.m.compacted && countRevision(rest, g.main) == len(kept) {
			want = kept
		}
		r.equal("events of a revision", countRevision(rest, g.main), len(want))
		for i, c := range want {
			r.sameEvent(w, rest[i], c)
		}
		rest = rest[len(want):]
		w.next = g.main + 1
	}
	if len(rest) > 0 {
		r.failf("event of revision %d is not expected", rest[0].Revision())
	}
}

// countRevision counts the events of a revision at the beginning.
func countRevision(events []*Event, main int64) (n int) {
	for n < len(events) && events[n].Revision() == main {
		n++
	}
	return n
}

func (r *modelRunner) sameEvent(w *modelWatch, e *Event, c modelRecord) {
	r.equal("event is a delete", e.IsDelete(), c.dead)
	got := r.decodeEvent(e, w.PrevKV)
	wantType, wantKV := mvccpb.Event_PUT, c.kv
	if c.dead {
		wantType, wantKV = mvccpb.Event_DELETE, &mvccpb.KeyValue{Key: c.kv.Key, ModRevision: c.main}
	}
	r.equal("event's type", got.Type, wantType)
	r.sameKV("event", got.Kv, wantKV)
	var prev *mvccpb.KeyValue
	if w.PrevKV {
		prev = r.m.get(c.main-1, c.kv.Key)
	}
	switch {
	case prev == nil:
		r.equal("event has a previous record", got.PrevKv != nil, false)
	case got.PrevKv != nil:
		r.sameKV("previous record", got.PrevKv, prev)
	case c.main > r.m.compacted:
		r.failf("event of revision %d lacks its previous record", c.main)
	}
}
