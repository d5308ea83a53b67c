package difftest

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

func ttl(name string, id int64) Step {
	return call(name, &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
}

func TestLease(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "grant and revoke", Steps: []Step{
			{"LSE-1 id chosen by the server", chosenLease()},
			call("LSE-1 id given", Grant(100, 60)),
			call("LSE-1 in use", Grant(100, 60)),
			call("LSE-1 in use with a large ttl", Grant(100, 9_000_000_001)),
			call("LSE-1 negative id", Grant(-5, 60)),
			call("LSE-2 largest ttl", Grant(101, 9_000_000_000)),
			call("LSE-2 too large", Grant(102, 9_000_000_001)),
			call("LSE-2 raised", Grant(103, 1)),
			call("LSE-2 negative", Grant(104, -3)),
			call("LSE-4 revoke the short ones", &pb.LeaseRevokeRequest{ID: 103}),
			call("LSE-4 revoke the other", &pb.LeaseRevokeRequest{ID: 104}),
			call("LSE-4 REV-4 revoke without keys", &pb.LeaseRevokeRequest{ID: 100}),
			call("LSE-4 revoke unknown", &pb.LeaseRevokeRequest{ID: 100}),
			call("LSE-4 revoke 0", &pb.LeaseRevokeRequest{}),
			call("LSE-4 revoke negative", &pb.LeaseRevokeRequest{ID: -5}),
			call("LSE-1 used again", Grant(100, 70)),
			ttl("LSE-8 without keys", 100),
			call("LSE-8 keys not asked", &pb.LeaseTimeToLiveRequest{ID: 100}),
			ttl("LSE-8 unknown", 12345),
			ttl("LSE-8 zero", 0),
			ttl("LSE-8 largest", 101),
		}},
		{Name: "order of leases", Steps: []Step{
			call("LSE-9 none", &pb.LeaseLeasesRequest{}),
			call("300", Grant(1, 300)), call("100", Grant(2, 100)), call("200", Grant(3, 200)),
			{"LSE-9 ascending by time left", leaseOrder()},
			{"renew", KeepAlive(2)},
			call("LSE-9 set", &pb.LeaseLeasesRequest{}),
		}},
		{Name: "attach", Steps: []Step{
			call("one", Grant(1, 300)), call("two", Grant(2, 300)),
			call("a", PutLease("a", "1", 1)), call("b", PutLease("b", "1", 1)), call("c", PutLease("c", "1", 1)),
			ttl("LSE-12 three", 1),
			call("LSE-12 same lease again", PutLease("a", "2", 1)), ttl("LSE-12 still three", 1),
			call("LSE-12 delete range", DeleteAll("a", "c")), ttl("LSE-12 one left", 1),
			call("LSE-12 txn moves", Do(Ops(PutLease("c", "2", 2), PutLease("d", "1", 1))...)), ttl("one after", 1), ttl("two after", 2),
			{"open", Open("w")}, {"watch", Ask("w", 1, over("a", "z", 0))},
			call("more", PutLease("zz", "1", 2)), call("PUT-4 put without lease", Put("d", "2")), {"event of d", Recv("w", 1)},
			call("LSE-4 revoke without keys left", &pb.LeaseRevokeRequest{ID: 1}),
			{"LSE-4 no event", Quiet("w")},
			call("LSE-4 REV-5 revoke two", &pb.LeaseRevokeRequest{ID: 2}),
			{"LSE-4 one event in range", Recv("w", 1)},
			call("PUT-3 put with a revoked lease", PutLease("a", "1", 2)),
			ttl("LSE-8 revoked", 2),
			{"LSE-5 keepalive of a revoked one", KeepAlive(2)},
		}},
		{Name: "many keys", Steps: []Step{
			call("grant", Grant(1, 300)),
			{"data", Quietly(300, func(i int) proto.Message { return PutLease(fmt.Sprintf("k%03d", i*7%300), "v", 1) })},
			{"open", Open("w")}, {"watch", Ask("w", 1, over("k", "l", 0))},
			call("REV-5 revoke", &pb.LeaseRevokeRequest{ID: 1}),
			{"REV-5 one message in key order", Recv("w", 1)},
		}},
		{Name: "keepalive", Steps: []Step{
			call("grant", Grant(1, 40)),
			{"LSE-5 LSE-7 known unknown known", KeepAlive(1, 2, 1)},
			{"LSE-7 nothing asked", KeepAlive()},
			{"LSE-5 zero and negative", KeepAlive(0, -1)},
			{"pause", Pause(3200 * time.Millisecond)},
			{"LSE-5 renews", KeepAlive(1)},
			ttl("LSE-5 full again", 1),
			call("revoke", &pb.LeaseRevokeRequest{ID: 1}),
			{"LSE-5 revoked", KeepAlive(1)},
		}},
		{Name: "expiry", Steps: []Step{
			{"open", Open("w")}, {"watch", Ask("w", 1, over("k", "l", 0))},
			call("grant", Grant(1, 2)),
			call("k3", PutLease("k3", "3", 1)), call("k1", PutLease("k1", "1", 1)),
			{"events", Recv("w", 2)},
			{"LSE-10 LSE-11 lives 2 s", WaitGone("k1", 1500*time.Millisecond)},
			{"LSE-10 REV-5 one message", Recv("w", 1)},
			{"LSE-5 expired", KeepAlive(1)},
			ttl("LSE-8 expired", 1),
			call("LSE-9 gone", &pb.LeaseLeasesRequest{}),
			call("LSE-4 revoke expired", &pb.LeaseRevokeRequest{ID: 1}),
			call("LSE-1 id free again", Grant(1, 60)),
		}},
		{Name: "keepalive at the end", Steps: []Step{
			call("grant", Grant(1, 2)), call("k", PutLease("k", "1", 1)),
			{"LSE-5 answers keep it alive", keptAlive(1, 4*time.Second)},
			{"LSE-11 key is still there", Call(Get("k"))},
			{"LSE-10 then it goes", WaitGone("k", time.Second)},
		}},
	})
}

// chosenLease grants with id 0 and compares that the id is positive and usable.
func chosenLease() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		c := pb.NewLeaseClient(s.Server.conn)
		r, err := c.LeaseGrant(ctx, Grant(0, 60))
		f.status(s, err)
		if err != nil {
			return f
		}
		f.add("id positive", r.ID > 0)
		id := r.ID
		r.ID = 0
		f.message(s, "msg", r)
		_, err = c.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
		f.status(s, err)
		return f
	}
}

// leaseOrder compares the order of the listed ids, which is masked elsewhere.
func leaseOrder() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		r, err := pb.NewLeaseClient(s.Server.conn).LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
		f.status(s, err)
		for i, l := range r.GetLeases() {
			f.add(fmt.Sprintf("lease[%d]", i), l.ID)
		}
		return f
	}
}

// keptAlive renews a lease each 500 ms for d and compares all answers as one.
func keptAlive(id int64, d time.Duration) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		for end := time.Now().Add(d); time.Now().Before(end); {
			f = KeepAlive(id)(ctx, s)
			time.Sleep(500 * time.Millisecond)
		}
		return f
	}
}
