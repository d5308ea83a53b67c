package store

import "sync/atomic"

const (
	// catchUpRevisions is the number of revisions in one message at most (etcd's).
	catchUpRevisions = 1000
	// catchUpBytes is the size of a message from which on it gets no further revision.
	catchUpBytes = 512 << 10
	// catchUpScan is the number of changes looked at under one lock.
	catchUpScan = 4096
)

// catchUp moves on for the first watcher that is behind and returns a message for it, if
// one came of it. hub.mu is held, but not while the history is read.
func (w *WatchStream) catchUp() (m WatchMessage, ok bool, err error) {
	h := w.hub
	x := w.behind[0]
	next, last := x.next, h.rev // no further than the synced watchers are: a later progress must not be lower
	h.mu.Unlock()
	c, err := h.s.readChanges(x, next, last)
	h.mu.Lock()
	switch {
	case err != nil:
		return m, false, err
	case w.closed || x.gone:
		return m, false, nil
	case c.compacted > 0:
		w.remove(x)
		if w.canceled == nil {
			w.canceled = make(map[int64]struct{})
		}
		w.canceled[x.ID] = struct{}{}
		atomic.AddUint64(&h.s.count.WatchesCanceledByCompaction, 1)
		h.s.log.Debug("watch canceled by compaction", "watch_id", x.ID, "key", x.span.start, "next", next, "compact_revision", c.compacted)
		return WatchMessage{Kind: WatchCanceled, ID: x.ID, CompactRevision: c.compacted}, true, nil
	}
	x.next = c.next
	w.behind = append(w.behind[1:], x) // the stream's watchers take turns
	if x.next > h.rev {
		w.behind = w.behind[:len(w.behind)-1]
		h.sync(x)
	}
	if len(c.events) == 0 {
		return m, false, nil
	}
	x.noted = true
	h.countEvents(len(c.events))
	m = WatchMessage{Kind: WatchEvents, ID: x.ID, Revision: h.rev, PrevKV: x.PrevKV, Events: c.events, cost: c.size + messageOverhead}
	w.bytes += m.cost
	return m, true, nil
}

// changeChunk is a stretch of history for one watcher.
type changeChunk struct {
	events    []*Event
	size      int
	next      int64 // first revision that was not looked at
	compacted int64 // not 0 if the history begins above the wanted revision
}

// readChanges reads the watcher's events from a revision to another: whole
// revisions, as many as fit in a message.
func (s *Store) readChanges(x *watcher, from, last int64) (c changeChunk, err error) {
	p := pin{&s.pins, from - 1}
	s.pins.add(p.rev)
	defer p.Close()
	compacted := s.compacted.Load()
	if from < compacted {
		return changeChunk{compacted: compacted}, nil
	}
	maker := eventMaker{s: s}
	defer maker.close()
	c.next = from
	revisions := 0
	for c.next <= last && len(c.events) == 0 {
		drafts := s.scanChanges(&maker, x, &c, &revisions, last, compacted)
		for _, d := range drafts {
			e, err := maker.complete(d)
			if err != nil {
				return c, s.readFailed(err)
			}
			c.events = append(c.events, e)
		}
	}
	return c, nil
}

// scanChanges looks at a bounded number of changes, to the end of a revision, and
// describes those that the watcher wants.
func (s *Store) scanChanges(maker *eventMaker, x *watcher, c *changeChunk, revisions *int, last, compacted int64) (out []draft) {
	m := &s.mem
	m.mu.RLock()
	defer m.mu.RUnlock()
	seen, main := 0, int64(0)
	for i := m.changesFrom(c.next); i < m.changes.len(); i++ {
		ch := m.changes.at(i)
		if ch.main > last {
			break
		}
		if ch.main != main {
			c.next = ch.main
			if seen >= catchUpScan || *revisions >= catchUpRevisions || c.size >= catchUpBytes {
				return out
			}
			main = ch.main
		}
		seen++
		if !x.span.contains(ch.entry.key) {
			continue
		}
		// What a compaction at this very revision has removed is not shown, be it gone already or not.
		d, ok := maker.draft(ch, x.PrevKV && ch.main > compacted)
		if !ok || !x.wants(d.delete) {
			continue
		}
		if n := len(out); n == 0 || out[n-1].main != ch.main {
			*revisions++
		}
		out = append(out, d)
		c.size += d.size
	}
	c.next = last + 1
	return out
}
