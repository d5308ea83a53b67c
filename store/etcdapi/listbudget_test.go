package etcdapi

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func testBudget(size int64) *listBudget {
	return newListBudget(size, slog.New(slog.DiscardHandler))
}

func TestListBudgetFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100)
		if n, err := b.acquire(t.Context(), 60); n != 60 || err != nil {
			t.Fatalf("acquire = %d, %v", n, err)
		}
		var order []int64
		var mu sync.Mutex
		wait := func(n int64) {
			go func() {
				if _, err := b.acquire(t.Context(), n); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		wait(90) // too large for now
		wait(10) // would fit, but is second
		if st := b.stats(); st.Waiting != 2 || st.InUse != 60 || st.Waits != 2 {
			t.Fatalf("stats %+v: want both to wait", st)
		}
		b.release(60)
		synctest.Wait()
		if len(order) != 2 || b.stats().InUse != 100 {
			t.Fatalf("served %v, in use %d", order, b.stats().InUse)
		}
	})
}

func TestListBudgetLargerThanAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100)
		if n, _ := b.acquire(t.Context(), 5000); n != 100 {
			t.Fatalf("got %d of 100", n)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.acquire(t.Context(), 1)
		}()
		synctest.Wait()
		if b.stats().Waiting != 1 {
			t.Fatal("a second one got through")
		}
		b.release(100)
		<-done
	})
}

func TestListBudgetGivingUpLetsOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100)
		_, _ = b.acquire(t.Context(), 50)
		ctx, cancel := context.WithCancel(t.Context())
		var gaveUp error
		go func() { _, gaveUp = b.acquire(ctx, 100) }()
		synctest.Wait()
		served := false
		go func() { _, _ = b.acquire(t.Context(), 50); served = true }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(gaveUp, context.Canceled) || !served {
			t.Fatalf("gave up with %v; the one behind was served: %v", gaveUp, served)
		}
		if st := b.stats(); st.InUse != 100 || st.Waiting != 0 {
			t.Fatalf("stats %+v", st)
		}
	})
}

// Who waits for long has the stalled looked for.
func TestListBudgetLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100)
		late := 0
		b.late = func() {
			if late++; late == 3 {
				b.release(100)
			}
		}
		_, _ = b.acquire(t.Context(), 100)
		begin := time.Now()
		if _, err := b.acquire(t.Context(), 10); err != nil || time.Since(begin) != 3*stallLimit {
			t.Errorf("waited %v, %v; was late %d times", time.Since(begin), err, late)
		}
	})
}

// Whatever happens, the budget is kept, nobody is forgotten, and all is given back.
func TestListBudgetRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b := testBudget(1000)
	var inUse atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		r := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(4) == 0 {
					cancel()
				}
				n, err := b.acquire(ctx, 1+r.Int64N(1500))
				cancel()
				if err != nil {
					continue
				}
				if inUse.Add(n) > 1000 {
					t.Error("more in use than the budget")
				}
				inUse.Add(-n)
				b.release(n)
			}
		})
	}
	wg.Wait()
	if st := b.stats(); st.InUse != 0 || st.Waiting != 0 {
		t.Fatalf("left over: %+v", st)
	}
}

func TestGrantShrinksWithItsBuffers(t *testing.T) {
	s := &Server{budget: testBudget(10 << 20)}
	if g, err := s.reserve(t.Context(), smallRead-1); g != nil || err != nil {
		t.Fatal("a small read asked the budget")
	}
	for _, total := range []int{3 * chunkSize, 15 << 20} {
		g, err := s.reserve(t.Context(), int64(total))
		if err != nil {
			t.Fatal(err)
		}
		var pieces message
		pieces.grant = g
		for left := total; left > 0; left -= chunkSize {
			buf, pool := g.allocate(min(left, chunkSize))
			*buf = (*buf)[:min(left, chunkSize)]
			pieces.granted += len(*buf)
			pieces.pieces = append(pieces.pieces, g.buffer(buf, pool))
		}
		out := pieces.take().items
		left := total
		for _, b := range out {
			if got, want := s.budget.stats().InUse, min(int64(left), 10<<20); got != want {
				t.Fatalf("%d bytes left: %d in use, want %d", left, got, want)
			}
			left -= b.Len()
			b.Free()
		}
		if n := s.budget.stats().InUse; n != 0 {
			t.Fatalf("%d bytes are never given back", n)
		}
	}
}

func TestGrantOfTinyAndDroppedResponses(t *testing.T) {
	s := &Server{budget: testBudget(1 << 20)}
	for name, end := range map[string]func(m *message){
		"sent":    func(m *message) { out := m.take().items; out[0].Free() },
		"dropped": func(m *message) { m.drop() },
	} {
		g, _ := s.reserve(t.Context(), smallRead) // an estimate that was far off
		m := message{grant: g}
		buf, pool := g.allocate(3)
		*buf = append(*buf, "abc"...)
		m.pieces = append(m.pieces, g.buffer(buf, pool))
		m.granted = 3
		end(&m)
		if n := s.budget.stats().InUse; n != 0 {
			t.Errorf("%s: %d bytes are never given back", name, n)
		}
	}
}
