package etcdapi

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/mem"
)

// sendTurns lets few large answers be sent at once: more than the processors can be busy with
// would not be sent sooner, and each goroutine of a small request would wait for all of
// them, since each keeps a processor until its client's buffers are full. Who comes first is
// served first. Its methods may be called from any goroutine.
//
// A client that takes its answer slowly needs no processor: once it is late by turnTime, and
// others wait, it keeps no turn. There is no timer while nobody waits.
type sendTurns struct {
	most int // turns at once
	log  *slog.Logger

	mu      sync.Mutex
	taken   []*sendTurn
	waiting []*turnWaiter // first come, first served
	timer   *time.Timer   // for the turn that ends first; nil while nobody waits
	waits   uint64
}

// sendTurn is the turn of one answer, from when gRPC gets it until gRPC has sent it.
type sendTurn struct {
	bytes int64
	ends  time.Time
}

type turnWaiter struct {
	turn    *sendTurn
	granted chan struct{}
}

// TurnStats is the state of the turns in which large answers are sent.
type TurnStats struct {
	Waiting int    // answers that wait for their turn now
	Waits   uint64 // answers that have waited since the start
}

const (
	// A client that takes turnRate bytes a second, after turnStart, is not slow.
	turnStart = 50 * time.Millisecond
	turnRate  = 50 << 20
)

// turnTime is how long an answer of n bytes keeps its turn if others wait.
func turnTime(n int64) time.Duration {
	return turnStart + time.Duration(n)*time.Second/turnRate
}

func newSendTurns(most int, log *slog.Logger) *sendTurns {
	return &sendTurns{most: most, log: log}
}

func (t *sendTurns) stats() TurnStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return TurnStats{Waiting: len(t.waiting), Waits: t.waits}
}

// take waits until an answer of n bytes may be sent. done must be called once it is sent, or is
// not sent after all. It returns ctx's error if ctx ends before.
func (t *sendTurns) take(ctx context.Context, n int64) (done func(), err error) {
	turn := &sendTurn{bytes: n}
	done = func() { t.giveBack(turn) }
	t.mu.Lock()
	if len(t.waiting) == 0 && len(t.taken) < t.most {
		t.grant(turn)
		t.mu.Unlock()
		return done, nil
	}
	w := &turnWaiter{turn: turn, granted: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.waits++
	waiting := len(t.waiting)
	t.setTimer()
	t.mu.Unlock()
	begin := time.Now()
	select {
	case <-w.granted:
		t.log.Debug("large answer has waited for its turn to be sent", "bytes", n, "waited", time.Since(begin), "waiting", waiting)
		return done, nil
	case <-ctx.Done():
		t.leave(w)
		return nil, ctx.Err()
	}
}

// turnOf waits for the turn of encoded items to be sent; small ones need none. What it returns
// must be called once they are sent; it calls done, as does the end of the client's connection. If ctx
// ends before, turnOf does so itself, and frees the items.
func (s *Server) turnOf(ctx context.Context, items raw, done func()) (func(), error) {
	n := int64(mem.BufferSlice(items).Len())
	if n < smallRead {
		return whenSent(ctx, done), nil
	}
	end, err := s.turns.take(ctx, n)
	if err != nil {
		mem.BufferSlice(items).Free()
		done()
		return nil, err
	}
	return whenSent(ctx, func() { end(); done() }), nil
}

// grant gives a turn. t.mu is held.
func (t *sendTurns) grant(turn *sendTurn) {
	turn.ends = time.Now().Add(turnTime(turn.bytes))
	t.taken = append(t.taken, turn)
}

// giveBack ends a turn, if it has not been lost.
func (t *sendTurns) giveBack(turn *sendTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.taken, turn); i >= 0 {
		t.taken = slices.Delete(t.taken, i, i+1)
		t.next()
	}
}

// leave gives up waiting, or gives back what was granted in the same moment.
func (t *sendTurns) leave(w *turnWaiter) {
	t.mu.Lock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.setTimer()
	}
	t.mu.Unlock()
	if i < 0 {
		t.giveBack(w.turn)
	}
}

// next lets those at the front go for whom there is a turn. t.mu is held.
func (t *sendTurns) next() {
	for len(t.waiting) > 0 && len(t.taken) < t.most {
		w := t.waiting[0]
		t.waiting = slices.Delete(t.waiting, 0, 1)
		t.grant(w.turn)
		close(w.granted)
	}
	t.setTimer()
}

// late takes the turns of answers that should be sent by now.
func (t *sendTurns) late() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.taken = slices.DeleteFunc(t.taken, func(turn *sendTurn) bool {
		late := len(t.waiting) > 0 && !now.Before(turn.ends)
		if late {
			t.log.Debug("a client takes a large answer slowly, others need not wait for it", "bytes", turn.bytes, "waiting", len(t.waiting))
		}
		return late
	})
	t.next()
}

// setTimer is called after each change. t.mu is held.
func (t *sendTurns) setTimer() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if len(t.waiting) == 0 {
		return
	}
	first := slices.MinFunc(t.taken, func(a, b *sendTurn) int { return a.ends.Compare(b.ends) })
	t.timer = time.AfterFunc(time.Until(first.ends), t.late)
}
