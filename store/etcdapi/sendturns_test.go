package etcdapi

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func testTurns(most int) *sendTurns { return newSendTurns(most, slog.New(slog.DiscardHandler)) }

func TestSendTurnsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := testTurns(2)
		var order []int64
		var done []func()
		for n := range int64(5) {
			go func() {
				end, err := turns.take(t.Context(), n)
				if err != nil {
					t.Error(err)
				}
				order, done = append(order, n), append(done, end)
			}()
			synctest.Wait()
		}
		if st := turns.stats(); len(order) != 2 || st.Waiting != 3 || st.Waits != 3 {
			t.Fatalf("served %v, %+v: want two, and three to wait", order, st)
		}
		for i := range 5 {
			done[i]()
			synctest.Wait()
		}
		if !slices.IsSorted(order) || len(order) != 5 || turns.stats().Waiting != 0 || turns.timer != nil {
			t.Errorf("served %v, %+v", order, turns.stats())
		}
	})
}

// A client that does not read costs those behind it one wait, and those after them none.
func TestSendTurnsSlowClientLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := testTurns(1)
		const size = 10 << 20
		slow, _ := turns.take(t.Context(), size)
		begin := time.Now()
		quick, err := turns.take(t.Context(), size)
		if waited := time.Since(begin); err != nil || waited != turnTime(size) {
			t.Fatalf("waited %v, %v; want %v", waited, err, turnTime(size))
		}
		slow() // late: it must not give anybody a second turn
		if len(turns.taken) != 1 {
			t.Fatalf("%d turns are taken", len(turns.taken))
		}
		quick()
		if len(turns.taken) != 0 {
			t.Fatalf("%d turns are taken", len(turns.taken))
		}
	})
}

// Nobody is late while nobody waits.
func TestSendTurnsKeptWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := testTurns(1)
		done, _ := turns.take(t.Context(), 1)
		if turns.timer != nil {
			t.Error("a timer runs though nobody waits")
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() {
			_, err := turns.take(ctx, 1)
			gaveUp <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) || turns.timer != nil || len(turns.taken) != 1 {
			t.Errorf("gave up with %v; timer %v, %d taken", err, turns.timer, len(turns.taken))
		}
		done()
	})
}

// Whatever happens, nobody is forgotten, and all is given back.
func TestSendTurnsRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		turns := testTurns(3)
		var served atomic.Int64
		var wg sync.WaitGroup
		for g := range 16 {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			wg.Go(func() {
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(time.Second))))
					done, err := turns.take(ctx, r.Int64N(1<<20))
					if err == nil {
						time.Sleep(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
						done()
						served.Add(1)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if st := turns.stats(); st.Waiting != 0 || len(turns.taken) != 0 || turns.timer != nil {
			t.Fatalf("left over: %+v, %d taken", st, len(turns.taken))
		}
		t.Logf("served %d of 1600", served.Load())
	})
}

// Lists wait for their turn; what is small does not, and whose client has gone leaves nothing behind.
func TestListsWaitForTheirTurn(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 8 << 20})
	k.fill(400, 2000)
	var turns []func()
	for range k.s.turns.most {
		done, err := k.s.turns.take(k.ctx, 1<<50) // not late for years
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, done)
	}
	waiting := func(n int) func() bool { return func() bool { return k.s.turns.stats().Waiting == n } }
	sorted := pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, SortOrder: pb.RangeRequest_DESCEND}
	answers := make(chan *pb.RangeResponse, 3)
	for n, req := range []*pb.RangeRequest{&underP, &sorted} {
		go func() {
			resp, err := k.kv.Range(k.ctx, req)
			if err != nil {
				t.Error(err)
			}
			answers <- resp
		}()
		k.until("a list waits", waiting(n+1))
	}
	go func() {
		chunks, err := k.stream(&underP)
		if err != nil {
			t.Error(err)
		}
		answers <- merge(chunks)
	}()
	k.until("a stream waits", waiting(3))

	ctx, cancel := context.WithCancel(k.ctx)
	gaveUp := make(chan error)
	go func() {
		_, err := k.kv.Range(ctx, &underP)
		gaveUp <- err
	}()
	k.until("another list waits", waiting(4))
	cancel()
	if err := <-gaveUp; status.Code(err) != codes.Canceled {
		t.Errorf("the canceled one ended with %v", err)
	}
	k.until("it has left", waiting(3))

	k.put("elsewhere", "x")
	if resp, err := k.kv.Range(k.ctx, &pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, CountOnly: true}); err != nil || resp.Count != 400 {
		t.Errorf("a count: %v, %v", resp, err)
	}
	for _, done := range turns {
		done()
	}
	for range 3 {
		if resp := <-answers; len(resp.GetKvs()) != 400 {
			t.Errorf("%d keys", len(resp.GetKvs()))
		}
	}
	k.until("all turns are given back", func() bool {
		k.s.turns.mu.Lock()
		defer k.s.turns.mu.Unlock()
		return len(k.s.turns.taken) == 0
	})
	k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
}
