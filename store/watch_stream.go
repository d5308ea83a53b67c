package store

import "slices"

// streamQueueBytes is how much may wait in a stream's queue. A watcher with an
// event beyond that falls behind: it gets the event later, from the history.
const streamQueueBytes = 1 << 20

// messageOverhead is what a message counts beside its events.
const messageOverhead = 64

// WatchStream is one client's watches and the one ordered queue of what is sent to it.
// All methods are safe for concurrent use, but Next and Sent are called by one
// goroutine at a time.
type WatchStream struct {
	hub   *hub
	ready func()

	// Guarded by hub.mu.
	watchers map[int64]*watcher
	// canceled are watches ended by a compaction that the client has not
	// canceled yet: their IDs stay taken.
	canceled map[int64]struct{}
	behind   []*watcher // the next to catch up for comes first
	queue    []WatchMessage
	bytes    int // of the queue and of what Next has handed out
	nextID   int64
	idle     bool // Next has found nothing; ready is owed
	closed   bool
}

// NewWatchStream opens a stream. ready is called, from any goroutine and without a
// lock held, when there is something to send after Next had found nothing; it
// must not block. The stream must be closed.
func (s *Store) NewWatchStream(ready func()) *WatchStream {
	w := &WatchStream{hub: &s.hub, ready: ready, idle: true, watchers: make(map[int64]*watcher)}
	s.hub.mu.Lock()
	s.hub.streams[w] = struct{}{}
	s.hub.mu.Unlock()
	return w
}

// Create begins a watch and queues its first message. It returns the watch's ID.
//
// ErrEmptyRange, ErrWatchIDInUse and, for a negative start, ErrCompacted are
// returned when it can not, and the error of req.Permit; nothing is queued then.
func (w *WatchStream) Create(req WatchRequest) (id int64, err error) {
	x := &watcher{WatchRequest: req, stream: w, span: req.span()}
	if x.span.empty() {
		return 0, ErrEmptyRange
	}
	if req.Start < 0 {
		return 0, ErrCompacted
	}
	h := w.hub
	h.mu.Lock()
	if w.closed || h.closed {
		h.mu.Unlock()
		return 0, ErrStopped
	}
	if req.Permit != nil {
		err = req.Permit()
		x.Permit = nil // it is not kept as long as the watch
	}
	if err == nil {
		x.ID, err = w.takeID(req.ID)
	}
	if err != nil {
		h.mu.Unlock()
		return 0, err
	}
	w.watchers[x.ID] = x
	x.next = req.Start
	if req.Start == 0 {
		x.next = h.rev + 1
	}
	wake := w.push(WatchMessage{Kind: WatchCreated, ID: x.ID, Revision: h.rev})
	if x.next > h.rev {
		h.sync(x)
	} else {
		w.behind = append(w.behind, x)
	}
	if req.Progress {
		h.progressWanted(1)
	}
	h.mu.Unlock()
	if wake {
		w.ready()
	}
	return x.ID, nil
}

// takeID returns the ID for a new watch: the wanted one, or the next free one.
func (w *WatchStream) takeID(want int64) (int64, error) {
	if want != 0 {
		if w.taken(want) {
			return 0, ErrWatchIDInUse
		}
		return want, nil
	}
	for w.taken(w.nextID) {
		w.nextID++
	}
	w.nextID++
	return w.nextID - 1, nil
}

func (w *WatchStream) taken(id int64) bool {
	_, canceled := w.canceled[id]
	return canceled || w.watchers[id] != nil
}

// Cancel ends a watch and queues its last message. It reports false, and queues
// nothing, if there is no such watch.
func (w *WatchStream) Cancel(id int64) bool {
	h := w.hub
	h.mu.Lock()
	if !w.taken(id) {
		h.mu.Unlock()
		return false
	}
	delete(w.canceled, id)
	if x := w.watchers[id]; x != nil {
		w.remove(x)
	}
	wake := w.push(WatchMessage{Kind: WatchCanceled, ID: id, Revision: h.rev})
	h.mu.Unlock()
	if wake {
		w.ready()
	}
	return true
}

// Close ends all watches. What is queued is dropped.
func (w *WatchStream) Close() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	for _, x := range w.watchers {
		w.remove(x)
	}
	w.queue = nil
	delete(h.streams, w)
}

// remove takes a watch out of everything. hub.mu is held, as for all that follow.
func (w *WatchStream) remove(x *watcher) {
	delete(w.watchers, x.ID)
	x.gone = true
	if x.synced {
		w.hub.ranges.remove(x)
		x.synced = false
	} else {
		w.behind = slices.DeleteFunc(w.behind, func(o *watcher) bool { return o == x })
		w.hub.history.leave(x)
	}
	if x.Progress {
		w.hub.progressWanted(-1)
	}
}

func (h *hub) sync(x *watcher) {
	x.synced = true
	h.ranges.add(x)
}

// fallBehind makes a synced watcher one that the stream has to catch up for, from next on.
func (x *watcher) fallBehind(next int64) {
	x.stream.hub.ranges.remove(x)
	x.synced, x.next = false, next
	x.stream.behind = append(x.stream.behind, x)
}

// push queues a message and reports whether ready must be called.
func (w *WatchStream) push(m WatchMessage) (wake bool) {
	if w.closed {
		return false
	}
	m.cost += messageOverhead
	w.bytes += m.cost
	w.queue = append(w.queue, m)
	wake, w.idle = w.idle, false
	return wake
}

// queueEvents queues the events of one revision for a synced watcher, or lets the
// watcher fall behind if the queue is full.
func (w *WatchStream) queueEvents(x *watcher, main int64, events []*Event) (wake bool) {
	m := WatchMessage{Kind: WatchEvents, ID: x.ID, Revision: main, PrevKV: x.PrevKV, Events: events}
	for _, e := range events {
		m.cost += e.Size(x.PrevKV)
	}
	if len(w.queue) > 0 && w.bytes+m.cost > streamQueueBytes {
		x.fallBehind(main)
		w.hub.s.log.Debug("watcher fell behind", "watch_id", x.ID, "key", x.span.start, "revision", main)
		return false
	}
	x.next = main + 1
	w.hub.countEvents(len(events))
	return w.push(m)
}

// Next returns what is to be sent next. It returns false if there is nothing for
// now: ready is called when there is. It may read from the disk.
func (w *WatchStream) Next() (WatchMessage, bool, error) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case w.closed || h.closed:
			return WatchMessage{}, false, ErrStopped
		case len(w.queue) > 0:
			m := w.queue[0]
			w.queue[0] = WatchMessage{}
			if w.queue = w.queue[1:]; len(w.queue) == 0 {
				w.queue = nil
			}
			return m, true, nil
		case len(w.behind) == 0:
			w.idle = true
			return WatchMessage{}, false, nil
		}
		if m, ok, err := w.catchUp(); ok || err != nil {
			return m, ok, err
		}
	}
}

// Sent tells that a message from Next has been sent, which makes room in the queue.
func (w *WatchStream) Sent(m WatchMessage) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.bytes -= m.cost
}
