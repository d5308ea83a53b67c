package store

import (
	"sync/atomic"
	"time"
)

// RequestProgress queues the answer to a client's question up to which revision it has
// got everything: one message for the whole stream. It is answered only if
// the stream has a watch, all its watches are synced, and none begins in the future;
// else it is dropped, and the client asks again.
func (w *WatchStream) RequestProgress() {
	h := w.hub
	atomic.AddUint64(&h.s.count.ProgressRequested, 1)
	h.mu.Lock()
	if why := w.noProgress(); why != "" {
		h.mu.Unlock()
		atomic.AddUint64(&h.s.count.ProgressDropped, 1)
		h.s.log.Debug("progress request dropped", "why", why)
		return
	}
	atomic.AddUint64(&h.s.count.ProgressAnswered, 1)
	rev := h.rev
	wake := w.push(WatchMessage{Kind: WatchProgress, ID: ProgressID, Revision: rev})
	h.mu.Unlock()
	h.s.log.Debug("progress request answered", "watch_id", ProgressID, "revision", rev)
	if wake {
		w.ready()
	}
}

// noProgress tells why the stream's progress can not be told now, or "".
func (w *WatchStream) noProgress() string {
	switch {
	case len(w.watchers) == 0:
		return "no watch on the stream"
	case len(w.behind) > 0:
		return "a watch is behind"
	case w.bytes > streamQueueBytes:
		return "the client does not read"
	}
	for _, x := range w.watchers {
		if x.Start > w.hub.rev {
			return "a watch begins in the future"
		}
	}
	return ""
}

// progressWanted counts the watches that want unasked progress, and runs the timer
// while there is one. hub.mu is held.
func (h *hub) progressWanted(n int) {
	h.wantsProgress += n
	switch {
	case h.wantsProgress == 0 && h.progress != nil:
		h.progress.Stop()
		h.progress = nil
	case h.wantsProgress > 0 && h.progress == nil && !h.closed:
		h.progress = time.AfterFunc(h.s.opts.ProgressInterval, h.tellProgress)
	}
}

// tellProgress queues the revision for each watch that wants it and has had no
// event since the last time. One timer serves all streams: an idle server wakes up once
// an interval.
func (h *hub) tellProgress() {
	var ready []*WatchStream
	h.mu.Lock()
	if h.progress != nil && !h.closed {
		h.progress.Reset(h.s.opts.ProgressInterval)
		for w := range h.streams {
			if w.tellProgress() {
				ready = append(ready, w)
			}
		}
	}
	h.mu.Unlock()
	for _, w := range ready {
		w.ready()
	}
}

func (w *WatchStream) tellProgress() (wake bool) {
	for id, x := range w.watchers {
		if !x.Progress {
			continue
		}
		quiet := !x.noted
		x.noted = false
		// A client with something in the queue gets its events first.
		if quiet && x.synced && x.Start <= w.hub.rev && (w.bytes < streamQueueBytes/2) {
			wake = w.push(WatchMessage{Kind: WatchProgress, ID: id, Revision: w.hub.rev}) || wake
			atomic.AddUint64(&w.hub.s.count.ProgressPeriodic, 1)
		}
	}
	return wake
}
