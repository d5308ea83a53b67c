package store

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxLanes is how many groups of watchers that share what they read there can be; and laneChunks
	// how many chunks each keeps for those who come after its first.
	maxLanes, laneChunks = 4, 12
	// laneWait is how long the first of a lane waits for the last, so that both go on with one
	// reading. Who has not come by then, as one whose client does not read, goes alone.
	laneWait = 50 * time.Millisecond
	// laneIdle is how long a lane is kept for those in it when others want one.
	laneIdle = time.Second
	// letGoBytes is how much is read before the tree's pages leave the resident memory.
	letGoBytes = 8 << 20
)

// history reads the past for watchers that are behind. Those that want the same, as after a restart of
// their clients, go in one lane: the first reads, and the others take what it has read.
type history struct {
	mu    sync.Mutex
	lanes []*lane // the one used last comes last
	read  int     // bytes since the tree's pages were let go

	buffers framedBuffers
}

// historyWant is which events are wanted.
type historyWant struct {
	span                    span
	prevKV, noPut, noDelete bool
	compacted               int64
}

// lane is a stretch of history that some watchers walk along. Guarded by history.mu.
type lane struct {
	want    historyWant
	chunks  []*historyChunk // one after the other
	members map[*watcher]struct{}
	used    time.Time
	moved   chan struct{} // closed when a member takes a chunk; nil if nobody waits for that
}

// take returns the chunk that begins at from, which must be released. If isNew is set, the caller
// fills it, up to upTo at most. A watcher must leave when it stops reading.
func (h *history) take(x *watcher, want historyWant, from, last int64) (c *historyChunk, upTo int64, isNew bool) {
	var timeout <-chan time.Time
	h.mu.Lock()
	defer h.mu.Unlock()
	for late := false; ; {
		l, c := h.find(want, from)
		if c != nil {
			c.refs.Add(1)
			h.join(x, l, c)
			return c, last, false
		}
		if l != nil && len(l.chunks) >= laneChunks && l.needed(x, l.chunks[0]) {
			if late {
				l.leaveBehind(x, l.chunks[0])
				continue
			}
			if timeout == nil {
				timer := time.NewTimer(laneWait)
				defer timer.Stop()
				timeout = timer.C
			}
			late = h.await(l, timeout)
			continue
		}
		upTo = h.upToNextLane(want, from, last)
		c = newChunk(from, &h.buffers)
		if l == nil {
			l = h.newLane(want)
		}
		if l == nil {
			h.part(x)
			return c, upTo, true
		}
		l.add(c)
		h.join(x, l, c)
		return c, upTo, true
	}
}

// find looks for the chunk that begins at from, or for the lane that it would be the next of.
func (h *history) find(want historyWant, from int64) (*lane, *historyChunk) {
	var next *lane
	for _, l := range h.lanes {
		if l.want != want {
			continue
		}
		for _, c := range l.chunks {
			if c.from == from {
				return l, c
			}
		}
		if n := len(l.chunks); n > 0 && l.chunks[n-1].endsBefore(from) {
			next = l
		}
	}
	return next, nil
}

// await lets the others go on until one of the lane has moved, and reports whether it took too long.
func (h *history) await(l *lane, timeout <-chan time.Time) (late bool) {
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	moved := l.moved
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-moved:
		return false
	case <-timeout:
		return true
	}
}

// upToNextLane is how far to read, so as not to read what another lane has.
func (h *history) upToNextLane(want historyWant, from, last int64) int64 {
	for _, l := range h.lanes {
		if l.want == want && l.chunks[0].from > from {
			last = min(last, l.chunks[0].from-1)
		}
	}
	return last
}

// newLane makes a lane, or returns nil if there are enough.
func (h *history) newLane(want historyWant) *lane {
	if len(h.lanes) >= maxLanes {
		if now().Sub(h.lanes[0].used) < laneIdle {
			return nil
		}
		h.drop(h.lanes[0])
	}
	l := &lane{want: want, members: make(map[*watcher]struct{})}
	h.lanes = append(h.lanes, l)
	return l
}

func (h *history) drop(l *lane) {
	for x := range l.members {
		x.lane = nil
	}
	for _, c := range l.chunks {
		c.release()
	}
	l.wake()
	h.lanes = slices.DeleteFunc(h.lanes, func(o *lane) bool { return o == l })
}

// join notes that a watcher has taken a chunk.
func (h *history) join(x *watcher, l *lane, c *historyChunk) {
	if x.lane != l {
		h.part(x)
		l.members[x] = struct{}{}
	}
	x.lane, x.took, l.used = l, c.from, now()
	l.wake()
	i := slices.Index(h.lanes, l)
	h.lanes = append(slices.Delete(h.lanes, i, i+1), l)
}

// leave is called when a watcher is not behind any more, or is gone.
func (h *history) leave(x *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.part(x)
}

func (h *history) part(x *watcher) {
	l := x.lane
	if l == nil {
		return
	}
	x.lane = nil
	delete(l.members, x)
	l.wake()
	if len(l.members) == 0 {
		h.drop(l)
	}
}

// hasRead counts what was read and reports whether it is time to let go of the tree's pages: a
// long history would else make all of the file resident.
func (h *history) hasRead(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read += n; h.read < letGoBytes {
		return false
	}
	h.read = 0
	return true
}

// add keeps the next chunk, and lets go of the first if there are too many.
func (l *lane) add(c *historyChunk) {
	if len(l.chunks) >= laneChunks {
		l.chunks[0].release()
		l.chunks = slices.Delete(l.chunks, 0, 1)
	}
	c.refs.Add(1)
	l.chunks = append(l.chunks, c)
}

// needed reports whether a member other than x has yet to take the chunk.
func (l *lane) needed(x *watcher, c *historyChunk) bool {
	for o := range l.members {
		if o != x && o.took < c.from {
			return true
		}
	}
	return false
}

// leaveBehind removes the members other than x that have not taken the chunk.
func (l *lane) leaveBehind(x *watcher, c *historyChunk) {
	for o := range l.members {
		if o != x && o.took < c.from {
			o.lane = nil
			delete(l.members, o)
		}
	}
}

func (l *lane) wake() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}
