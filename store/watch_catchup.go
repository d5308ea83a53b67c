package store

import "sync/atomic"

const (
	// catchUpRevisions is the number of revisions in one message at most (etcd's).
	catchUpRevisions = 1000
	// catchUpBytes is the size of a message from which on it gets no further revision: enough that
	// what a message costs by itself does not count.
	catchUpBytes = 128 << 10
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
	c, compacted, err := h.s.readChanges(x, next, last)
	h.mu.Lock()
	switch {
	case err != nil:
		return m, false, err
	case w.closed || x.gone:
		h.history.leave(x)
		if c != nil {
			c.release()
		}
		return m, false, nil
	case compacted > 0:
		w.remove(x)
		if w.canceled == nil {
			w.canceled = make(map[int64]struct{})
		}
		w.canceled[x.ID] = struct{}{}
		atomic.AddUint64(&h.s.count.WatchesCanceledByCompaction, 1)
		h.s.log.Debug("watch canceled by compaction", "watch_id", x.ID, "key", x.span.start, "next", next, "compact_revision", compacted)
		return WatchMessage{Kind: WatchCanceled, ID: x.ID, CompactRevision: compacted}, true, nil
	}
	x.next = c.next
	w.behind = append(w.behind[1:], x) // the stream's watchers take turns
	if x.next > h.rev {
		w.behind = w.behind[:len(w.behind)-1]
		h.history.leave(x)
		h.sync(x)
	}
	if c.events == 0 {
		c.release()
		return m, false, nil
	}
	x.noted = true
	h.countEvents(c.events)
	m = WatchMessage{Kind: WatchEvents, ID: x.ID, Revision: h.rev, PrevKV: x.PrevKV, Framed: c.framed, chunk: c, cost: len(c.framed) + messageOverhead}
	w.bytes += m.cost
	return m, true, nil
}

// readChanges returns the watcher's events from a revision to another, whole
// revisions, as many as fit in a message, which must be released; or compacted, which is
// not 0 if the history begins above the wanted revision.
func (s *Store) readChanges(x *watcher, from, last int64) (c *historyChunk, compacted int64, err error) {
	p := pin{&s.pins, from - 1}
	s.pins.add(p.rev)
	defer p.Close()
	compacted = s.compacted.Load()
	if from < compacted {
		return nil, compacted, nil
	}
	want := historyWant{span: x.span, prevKV: x.PrevKV, noPut: x.NoPut, noDelete: x.NoDelete, compacted: compacted}
	c, last, isNew := s.hub.history.take(x, want, from, last)
	if isNew {
		s.fillChunk(c, x, compacted, last)
	}
	<-c.done
	if err := c.err; err != nil {
		c.release()
		return nil, 0, err
	}
	return c, 0, nil
}

// scanChanges describes the changes that the watcher wants, whole revisions, as many
// as fit in a message. It returns the first revision that it did not look at.
func (s *Store) scanChanges(x *watcher, from, last, compacted int64) (out []pastEvent, next int64) {
	scan := changeScan{watcher: x, last: last, compacted: compacted, limit: s.hub.history.buffers.limit()}
	at := Revision{Main: from}
	for more := true; more && !scan.full; {
		at, more = scan.step(&s.mem, at)
	}
	return scan.out, at.Main
}

// changeScan gathers changes for one message.
type changeScan struct {
	*watcher
	last, compacted int64
	limit           int // bytes after which no further revision is taken

	out             []pastEvent
	main            int64 // of the change looked at last
	revisions, size int
	full            bool // the next revision is for the next message
}

// step looks at a bounded number of changes, so that writers do not wait long for
// the lock, and returns where to go on.
func (c *changeScan) step(m *memory, from Revision) (next Revision, more bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	first := m.changesFromRevision(from)
	for i := first; i < m.changes.len(); i++ {
		ch := m.changes.at(i)
		if ch.main > c.last {
			break
		}
		at := Revision{Main: ch.main, Sub: int64(ch.sub)}
		if i-first == catchUpScan {
			return at, true
		}
		if ch.main != c.main && (c.revisions >= catchUpRevisions || c.size >= c.limit) {
			c.full = true
			return at, true
		}
		c.main = ch.main
		c.look(ch)
	}
	return Revision{Main: c.last + 1}, false
}

func (c *changeScan) look(ch *change) {
	if !c.span.contains(ch.entry.key) {
		return
	}
	// What a compaction at this very revision has removed is not shown, be it gone already or not.
	p, ok := ch.pastEvent(c.PrevKV && ch.main > c.compacted)
	if !ok || !c.wants(p.tombstone) {
		return
	}
	if n := len(c.out); n == 0 || c.out[n-1].main != ch.main {
		c.revisions++
	}
	c.out = append(c.out, p)
	c.size += int(p.size) + int(p.prevSize) + messageOverhead
}
