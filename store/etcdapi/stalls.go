package etcdapi

import (
	"log/slog"
	"sync"
	"time"
)

// stallLimit is how long a client may take nothing of its large answers while others wait for the
// list budget.
const stallLimit = time.Minute

// stalls knows the connections on which large answers are under way. A client that has stopped, and
// whose connection stays open, would keep its share of the list budget for ever.
type stalls struct {
	log *slog.Logger

	mu    sync.Mutex
	conns map[*sortedConn]struct{}
}

func newStalls(log *slog.Logger) *stalls {
	return &stalls{log: log, conns: make(map[*sortedConn]struct{})}
}

func (s *stalls) add(c *sortedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
}

func (s *stalls) remove(c *sortedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// cut closes the connections to which nothing could be written since the given time, though a large
// answer waits to be.
func (s *stalls) cut(since time.Time) {
	s.mu.Lock()
	var stalled []*sortedConn
	for c := range s.conns {
		// 0: its last answer has just ended, and it is about to leave.
		if last := c.answers.progress.Load(); last != 0 && last < since.UnixNano() {
			stalled = append(stalled, c)
		}
	}
	s.mu.Unlock()
	for _, c := range stalled {
		s.log.Warn("a client takes nothing of a large answer, and others wait for the memory: its connection is closed",
			"remote", c.RemoteAddr().String(), "for", time.Since(time.Unix(0, c.answers.progress.Load())).Round(time.Second))
		c.Close()
	}
}
