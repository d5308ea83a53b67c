package etcdapi

import (
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// However many clients do not read, and keep those who send to them waiting, others get their events.
func TestStalledWatchesHoldUpNobody(t *testing.T) {
	const stalled = keptSenders + 4
	k := newKVTest(t, Config{})
	for range stalled {
		w := k.newWatch()
		w.create(&pb.WatchCreateRequest{Key: []byte("a")})
		w.want("0 @1 created")
	}
	large := strings.Repeat("x", 100_000)
	k.until("all have fallen behind", func() bool {
		k.put("a", large)
		return k.s.store.Status().SlowWatchers == stalled
	})
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte("b")})
	if m := w.next(); !m.Created {
		t.Fatalf("the first message is %v", m)
	}
	rev := k.put("b", "x")
	if m := w.next(); len(m.Events) != 1 || m.Events[0].Kv.ModRevision != rev {
		t.Errorf("got %s instead of the event of revision %d", showWatch(m), rev)
	}
}
