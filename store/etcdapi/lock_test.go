package etcdapi

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

func TestLock(t *testing.T) {
	t.Run("GRPC-15 passes on in order of creation", func(t *testing.T) {
		l := newLockTest(t)
		l.equal("first", l.lock(l.ctx, 5), outcome{"q/5", 2, nil})
		l.equal("first again", l.lock(l.ctx, 5), outcome{"q/5", 2, nil})
		four, three := l.begin(l.lock, 4), l.begin(l.lock, 3)
		l.equal("queue", l.keys(), "q/5 q/4 q/3")
		l.unlock("q/5")
		l.equal("four's header is of now", <-four.end, outcome{"q/4", 5, nil})
		l.unlock("q/4")
		l.ends(three, "q/3")
		l.idle()
	})
	t.Run("GRPC-15 the end of the holder's lease passes it on", func(t *testing.T) {
		l := newLockTest(t)
		l.lock(l.ctx, 1)
		two := l.begin(l.lock, 2)
		l.revoke(1)
		l.ends(two, "q/2")
	})
	t.Run("GRPC-15 who gives up leaves the queue", func(t *testing.T) {
		l := newLockTest(t)
		l.lock(l.ctx, 1)
		two, three := l.begin(l.lock, 2), l.begin(l.lock, 3)
		two.cancel()
		l.until("the key is deleted", func() bool { return l.keys() == "q/1 q/3" })
		l.unlock("q/1")
		l.ends(three, "q/3")
		l.idle()
	})
	t.Run("V-20 who loses its key learns it at once", func(t *testing.T) {
		l := newLockTest(t)
		l.lock(l.ctx, 1)
		two, three := l.begin(l.lock, 2), l.begin(l.lock, 3)
		l.revoke(2)
		wantStatus(t, (<-two.end).err, codes.Unknown, "mutex: session is expired")
		l.del("q/3", "")
		wantStatus(t, (<-three.end).err, codes.Unknown, "mutex: session is expired")
		l.equal("queue", l.keys(), "q/1")
		l.idle()
	})
	t.Run("GRPC-15 a lease of its own", func(t *testing.T) {
		l := newLockTest(t)
		o := l.lock(l.ctx, 0)
		kv := l.get(&pb.RangeRequest{Key: []byte(o.key)}).Kvs[0]
		ttl, err := l.lease.LeaseTimeToLive(l.ctx, &pb.LeaseTimeToLiveRequest{ID: kv.Lease})
		if err != nil || ttl.GrantedTTL != sessionTTL {
			t.Errorf("lease %v, %v", ttl, err)
		}
	})
	t.Run("GRPC-15 errors are UNKNOWN", func(t *testing.T) {
		l := newLockTest(t)
		wantStatus(t, l.lock(l.ctx, 77).err, codes.Unknown, "etcdserver: requested lease not found")
		_, err := l.locks.Unlock(l.ctx, &concurrencypb.UnlockRequest{})
		wantStatus(t, err, codes.Unknown, "etcdserver: key is not provided")
	})
}

// TestContenderKeyMadeAnew is V-19: a key that was deleted and created again has
// another place in the queue.
func TestContenderKeyMadeAnew(t *testing.T) {
	l := newLockTest(t)
	l.lock(l.ctx, 1)
	e, err := l.s.enter(l.ctx, []byte("q"), 2, nil)
	if err != nil || e.first {
		t.Fatalf("%+v, %v", e, err)
	}
	l.del("q/2", "")
	l.putLease("q/2", "", 2)
	l.unlock("q/1")
	if _, err := e.wait(l.ctx, errSessionExpired); err != errSessionExpired {
		t.Errorf("waiting ends with %v", err)
	}
	l.equal("the other's key stays", l.keys(), "q/2")
	e.withdraw(l.ctx)
	l.equal("also after withdrawing", l.keys(), "q/2")
}

// TestContenderBehindCompaction waits from a revision that is compacted: the caller
// must read again and not wait for ever, or fail.
func TestContenderBehindCompaction(t *testing.T) {
	l := newLockTest(t)
	l.lock(l.ctx, 1)
	e, err := l.s.enter(l.ctx, []byte("q"), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.compact(l.put("x", "1"))
	if err := e.untilChanged(l.ctx, 2, []byte("q/1"), 2); err != nil {
		t.Errorf("waiting ends with %v", err)
	}
	l.idle()
}

// TestLockWhenServerStops checks that a call that waits does not hold up Stop, and
// leaves no key that would hold up others after a restart.
func TestLockWhenServerStops(t *testing.T) {
	l := newLockTest(t)
	l.lock(l.ctx, 1)
	two, three := l.begin(l.lock, 2), l.begin(l.campaign, 3)
	if err := l.s.Stop(l.ctx); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, (<-two.end).err, codes.Unavailable, "etcdserver: server stopped")
	wantStatus(t, (<-three.end).err, codes.Unavailable, "etcdserver: server stopped")
	r, err := l.s.inner().get(l.ctx, firstOf([]byte("q/")))
	if err != nil || r.Count != 1 {
		t.Errorf("%v, %v", r, err)
	}
	l.idle()
}

// TestLockHasOneHolder has many clients take a lock at once, some of which give up.
func TestLockHasOneHolder(t *testing.T) {
	l := newLockTest(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var holders atomic.Int32
	var all sync.WaitGroup
	for i := range 60 {
		lease := int64(1000 + i)
		if _, err := l.lease.LeaseGrant(l.ctx, &pb.LeaseGrantRequest{ID: lease, TTL: 1000}); err != nil {
			t.Fatal(err)
		}
		patience := -1
		if rnd.IntN(4) == 0 {
			patience = rnd.IntN(1000)
		}
		all.Go(func() {
			if patience >= 0 {
				l.lockImpatiently(lease, patience)
				return
			}
			o := l.lock(l.ctx, lease)
			if n := holders.Add(1); n != 1 || o.err != nil {
				t.Errorf("%d holders, %+v", n, o)
			}
			holders.Add(-1)
			if _, err := l.locks.Unlock(l.ctx, &concurrencypb.UnlockRequest{Key: []byte(o.key)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l.until("the queue is empty", func() bool { return l.keys() == "" })
	l.idle()
}

// lockImpatiently gives up after some turns of the scheduler. It may have got the
// lock without learning it, so it ends the lease then, as a client would.
func (t *lockTest) lockImpatiently(lease int64, turns int) {
	ctx, cancel := context.WithCancel(t.ctx)
	go func() {
		for range turns {
			runtime.Gosched()
		}
		cancel()
	}()
	t.lock(ctx, lease)
	if _, err := t.lease.LeaseRevoke(t.ctx, &pb.LeaseRevokeRequest{ID: lease}); err != nil {
		t.Error(err)
	}
}
