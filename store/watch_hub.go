package store

import (
	"sync"
	"sync/atomic"
	"time"
)

// hub hands published changes to watchers. A watcher is synced: it is in ranges and
// has got everything up to rev; or it is behind: its stream catches up for it, from
// the changes in memory, at the client's pace.
type hub struct {
	s  *Store
	mu sync.Mutex // guards all that follows, and all streams and watchers
	// rev is the revision up to which synced watchers have been served.
	rev     int64
	ranges  ranges
	streams map[*WatchStream]struct{}
	closed  bool
	history history // for those that are behind; it has a lock of its own

	progress      *time.Timer // set while a watcher wants unasked progress
	wantsProgress int
}

// watcher is one watch of a stream.
type watcher struct {
	WatchRequest
	stream *WatchStream
	span   span
	// next is the first revision that the watcher has not got. It may lie in the future.
	next   int64
	synced bool
	gone   bool // removed, while its stream was catching up for it
	// noted is set when the watcher has got an event since the last progress tick.
	noted bool

	group *group // while synced
	pos   int

	lane *lane // while behind; guarded by history.mu, as took
	took int64 // beginning of the chunk that it has taken last
}

func (h *hub) init(s *Store) {
	h.s = s
	h.streams = make(map[*WatchStream]struct{})
}

// publish hands the changes of the revisions in (from, to] to the synced watchers.
// It is called by the flusher, in order.
func (h *hub) publish(from, to int64) {
	h.mu.Lock()
	var ready []*WatchStream
	if len(h.ranges.groups) > 0 {
		if hull, many := h.s.mem.manyChanges(from, to); many {
			ready = h.fallBehind(hull, from, to)
		} else {
			ready = h.deliver(from, to)
		}
	}
	h.rev = to
	h.mu.Unlock()
	for _, w := range ready {
		w.ready()
	}
}

// fallBehind leaves the revisions in (from, to], which have changed keys inside hull, to the
// catch-up of each watcher: to make so many events here would hold up the writers. It
// returns the streams that have something to send now and had not before.
func (h *hub) fallBehind(hull span, from, to int64) (ready []*WatchStream) {
	var late []*watcher
	for _, g := range h.ranges.groups {
		if g.span.overlaps(hull) {
			late = append(late, g.watchers...)
		}
	}
	for _, x := range late {
		if x.next > to {
			continue
		}
		x.fallBehind(max(x.next, from+1))
		if w := x.stream; w.idle {
			w.idle = false
			ready = append(ready, w)
		}
	}
	h.s.log.Debug("watchers catch up with many changes", "watchers", len(late), "from", from, "to", to)
	return ready
}

// deliver queues the events of some revisions and returns the streams that have
// something to send now and had not before.
func (h *hub) deliver(from, to int64) (ready []*WatchStream) {
	maker := eventMaker{s: h.s}
	defer maker.close()
	var touched []*group
	main := int64(0)
	for _, d := range h.matched(&maker, from, to) {
		if d.main != main {
			ready = h.queueRevision(touched, main, ready)
			touched, main = touched[:0], d.main
		}
		e, err := maker.complete(d)
		if err != nil {
			h.s.fail(err)
			return ready
		}
		h.ranges.match(e.key, func(g *group) {
			if len(g.events) == 0 {
				touched = append(touched, g)
			}
			g.events = append(g.events, e)
		})
	}
	return h.queueRevision(touched, main, ready)
}

// matched describes the changes in (from, to] that anybody watches.
func (h *hub) matched(maker *eventMaker, from, to int64) (out []draft) {
	m := &h.s.mem
	m.mu.RLock()
	defer m.mu.RUnlock()
	for i := m.changesFrom(from + 1); i < m.changes.len(); i++ {
		c := m.changes.at(i)
		if c.main > to {
			break
		}
		watched, prev := false, false
		h.ranges.match(c.entry.key, func(g *group) { watched, prev = true, prev || g.wantPrev > 0 })
		if watched {
			if d, ok := maker.draft(c, prev); ok {
				out = append(out, d)
			}
		}
	}
	return out
}

// queueRevision queues one message per watcher of the groups that have events at a
// revision.
func (h *hub) queueRevision(touched []*group, main int64, ready []*WatchStream) []*WatchStream {
	for _, g := range touched {
		events := g.events
		g.events = nil
		for i := len(g.watchers) - 1; i >= 0; i-- { // one that falls behind leaves the list
			w := g.watchers[i]
			if main < w.next {
				continue
			}
			mine := w.filter(events)
			if len(mine) == 0 {
				continue
			}
			w.noted = true
			if w.stream.queueEvents(w, main, mine) {
				ready = append(ready, w.stream)
			}
		}
	}
	return ready
}

// filter returns the events that the watcher wants; all of them share one slice.
func (w *watcher) filter(events []*Event) []*Event {
	if !w.NoPut && !w.NoDelete {
		return events
	}
	var out []*Event
	for _, e := range events {
		if w.wants(e.delete) {
			out = append(out, e)
		}
	}
	return out
}

func (w *watcher) wants(isDelete bool) bool {
	return isDelete && !w.NoDelete || !isDelete && !w.NoPut
}

// sizes counts streams, watchers, watchers that are behind, and queued events.
func (h *hub) sizes(st *Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st.Streams = len(h.streams)
	for w := range h.streams {
		st.Watchers += len(w.watchers)
		st.SlowWatchers += len(w.behind)
		for i := range w.queue {
			st.PendingEvents += len(w.queue[i].Events)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.progress != nil {
		h.progress.Stop()
	}
}

func (h *hub) countEvents(n int) { atomic.AddUint64(&h.s.count.Events, uint64(n)) }
