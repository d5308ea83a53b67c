package etcdapi

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// lockTest is a server with leases 1 to 9, and clients of its Lock and Election services.
type lockTest struct {
	*kvTest
	locks     concurrencypb.LockClient
	elections concurrencypb.ElectionClient
}

func newLockTest(t *testing.T) *lockTest {
	t.Helper()
	s, addr := startServer(t, Config{})
	conn := dial(t, addr)
	l := &lockTest{
		kvTest: &kvTest{T: t, ctx: testContext(t), s: s,
			kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn), lease: pb.NewLeaseClient(conn)},
		locks: concurrencypb.NewLockClient(conn), elections: concurrencypb.NewElectionClient(conn),
	}
	for id := int64(1); id <= 9; id++ {
		if _, err := l.lease.LeaseGrant(l.ctx, &pb.LeaseGrantRequest{ID: id, TTL: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// outcome is the end of a call that waited.
type outcome struct {
	key      string
	revision int64
	err      error
}

func (t *lockTest) lock(ctx context.Context, lease int64) (o outcome) {
	r, err := t.locks.Lock(ctx, &concurrencypb.LockRequest{Name: []byte("q"), Lease: lease})
	return outcome{string(r.GetKey()), r.GetHeader().GetRevision(), err}
}

func (t *lockTest) campaign(ctx context.Context, lease int64) (o outcome) {
	r, err := t.elections.Campaign(ctx, &concurrencypb.CampaignRequest{Name: []byte("q"), Lease: lease, Value: []byte("v")})
	return outcome{string(r.GetLeader().GetKey()), r.GetHeader().GetRevision(), err}
}

// waiting is a call in the background.
type waiting struct {
	cancel context.CancelFunc
	end    chan outcome
}

// begin starts a call and returns when it waits: each waiter has a stream with two watches.
func (t *lockTest) begin(call func(context.Context, int64) outcome, lease int64) *waiting {
	t.Helper()
	before := t.s.store.Status().Watchers
	ctx, cancel := context.WithCancel(t.ctx)
	t.Cleanup(cancel)
	w := &waiting{cancel, make(chan outcome, 1)}
	go func() { w.end <- call(ctx, lease) }()
	t.until("the call waits", func() bool { return t.s.store.Status().Watchers == before+2 })
	return w
}

func (t *lockTest) ends(w *waiting, key string) {
	t.Helper()
	if o := <-w.end; o.err != nil || o.key != key {
		t.Errorf("the call ended with %+v, want %s", o, key)
	}
}

func (t *lockTest) unlock(key string) {
	t.Helper()
	if _, err := t.locks.Unlock(t.ctx, &concurrencypb.UnlockRequest{Key: []byte(key)}); err != nil {
		t.Fatal(err)
	}
}

func (t *lockTest) revoke(lease int64) {
	t.Helper()
	if _, err := t.lease.LeaseRevoke(t.ctx, &pb.LeaseRevokeRequest{ID: lease}); err != nil {
		t.Fatal(err)
	}
}

// keys shows the queue.
func (t *lockTest) keys() string {
	t.Helper()
	all := firstOf([]byte("q/"))
	all.Limit = 0
	return showKeys(t.get(all).Kvs)
}

// idle checks that nothing of the calls is left behind.
func (t *lockTest) idle() {
	t.Helper()
	t.until("all watches are gone", func() bool { return t.s.store.Status().Streams == 0 })
}
