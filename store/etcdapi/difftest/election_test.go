package difftest

import (
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
)

func campaign(lease int64, value string) *v3electionpb.CampaignRequest {
	return &v3electionpb.CampaignRequest{Name: []byte("e"), Lease: lease, Value: []byte(value)}
}

func proclaim(key string, rev, lease int64, value string) *v3electionpb.ProclaimRequest {
	return &v3electionpb.ProclaimRequest{Leader: leaderKey(key, rev, lease), Value: []byte(value)}
}

func resign(key string, rev, lease int64) *v3electionpb.ResignRequest {
	return &v3electionpb.ResignRequest{Leader: leaderKey(key, rev, lease)}
}

func leaderKey(key string, rev, lease int64) *v3electionpb.LeaderKey {
	return &v3electionpb.LeaderKey{Name: []byte("e"), Key: []byte(key), Rev: rev, Lease: lease}
}

func TestElection(t *testing.T) {
	leader := func(name string) Step { return call(name, &v3electionpb.LeaderRequest{Name: []byte("e")}) }
	suite.Run(t, []Case{
		{Name: "alone", Steps: append(leases(1, 2),
			leader("GRPC-15 no leader"),
			call("GRPC-15 campaign", campaign(1, "me")), leader("GRPC-15 leader"),
			call("GRPC-15 same value again", campaign(1, "me")), call("GRPC-15 other value", campaign(1, "you")), leader("GRPC-15 has it"),
			call("GRPC-15 proclaim", proclaim("e/1", 2, 1, "us")), leader("GRPC-15 leader proclaimed"),
			call("GRPC-15 proclaim with another revision", proclaim("e/1", 3, 1, "x")), call("GRPC-15 proclaim another key", proclaim("e/2", 2, 2, "x")),
			call("GRPC-15 proclaim with an unknown lease", proclaim("e/1", 2, 77, "x")), call("GRPC-15 proclaim with another lease", proclaim("e/1", 2, 2, "moved")),
			call("GRPC-15 proclaim without leader", &v3electionpb.ProclaimRequest{}), call("GRPC-15 proclaim without key", proclaim("", 2, 1, "x")),
			call("GRPC-15 resign without leader", &v3electionpb.ResignRequest{}), call("GRPC-15 resign without key", resign("", 2, 1)),
			call("GRPC-15 resign with another revision", resign("e/1", 3, 1)), leader("GRPC-15 still leader"),
			call("GRPC-15 resign", resign("e/1", 2, 1)), call("GRPC-15 resign again", resign("e/1", 2, 1)), leader("GRPC-15 no leader again"),
			call("GRPC-15 campaign with an unknown lease", campaign(77, "x")), call("GRPC-15 empty value", campaign(2, "")),
			call("GRPC-15 leader of nothing", &v3electionpb.LeaderRequest{}),
		)},
		{Name: "queue", Steps: append(leases(1, 2, 3),
			call("one", campaign(1, "1")), Step{"two", Begin("two", "e/2", campaign(2, "2"))}, Step{"three", Begin("three", "e/3", campaign(3, "3"))},
			Step{"GRPC-15 two waits", Waits("two")}, leader("GRPC-15 one leads"),
			Step{"two again", Begin("again", "e/2", campaign(2, "2b"))}, Step{"GRPC-15 waits too", Waits("again")}, call("GRPC-15 its value", Get("e/2")),
			call("resign", resign("e/1", 2, 1)), Step{"GRPC-15 two leads", End("two")}, Step{"GRPC-15 both calls", End("again")}, leader("GRPC-15 leader two"),
			Step{"GRPC-15 three waits", Waits("three")}, call("revoke two", revoke(2)), Step{"GRPC-15 three leads", End("three")}, leader("GRPC-15 leader three"),
		)},
		{Name: "given up", Steps: append(leases(1, 2, 3),
			call("one", campaign(1, "1")), Step{"two", Begin("two", "e/2", campaign(2, "2"))}, Step{"three", Begin("three", "e/3", campaign(3, "3"))},
			Step{"two gives up", GiveUp("two")}, Step{"GRPC-15 its key is deleted", WaitGone("e/2", 0)}, Step{"GRPC-15 three waits", Waits("three")},
			call("resign", resign("e/1", 2, 1)), Step{"GRPC-15 three leads", End("three")},
		)},
		{Name: "lease revoked while waiting", Steps: append(leases(1, 2),
			call("one", campaign(1, "1")), Step{"two", Begin("two", "e/2", campaign(2, "2"))},
			call("revoke", revoke(2)), Step{"V-20 the call", Waits("two")},
			call("resign", resign("e/1", 2, 1)), Step{"V-19 end", End("two")}, leader("GRPC-15 nobody leads"),
		)},
		{Name: "without lease", Diverge: true, Steps: []Step{
			{"GRPC-15 campaign", OwnLease(campaign(0, "x"), "e")}, {"GRPC-15 leases", LeaseCount()},
			call("grant", Grant(1, 300)), call("resign", resign("e/1", 9, 0)), {"V-21 resign", LeaseCount()},
		}},
		{Name: "proclaim without lease", Diverge: true, Steps: append(leases(1),
			call("campaign", campaign(1, "x")), call("proclaim", proclaim("e/1", 2, 0, "y")),
			Step{"GRPC-15 leases", LeaseCount()}, call("GRPC-15 the first lease has no key", revoke(1)), call("GRPC-15 the leader stays", All(0), Hide("random", "msg.kvs[0].lease")),
		)},
	})
}

func TestObserve(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "leader is there", Steps: append(leases(1, 2),
			call("one", campaign(1, "1")), call("put elsewhere", Put("x", "1")), Step{"open", Observe("o", "e")}, Step{"GRPC-15 the leader", Leaders("o", 1)},
			call("proclaim", proclaim("e/1", 2, 1, "1b")), call("proclaim again", proclaim("e/1", 2, 1, "1c")), Step{"GRPC-15 two values", Leaders("o", 2)},
			Step{"two", Begin("two", "e/2", campaign(2, "2"))}, Step{"GRPC-15 a candidate is none", Leaders("o", 0)},
			call("resign", resign("e/1", 2, 1)), Step{"two leads", End("two")}, Step{"GRPC-15 the next leader", Leaders("o", 1)},
			call("revoke", revoke(2)), Step{"GRPC-15 nobody", Leaders("o", 0)},
			call("one leads again", campaign(1, "1d")), Step{"GRPC-15 one again", Leaders("o", 1)},
			Step{"GRPC-15 hang up", GiveUp("o")},
		)},
		{Name: "no leader yet", Steps: append(leases(1),
			Step{"open", Observe("o", "e")}, Step{"GRPC-15 nobody", Leaders("o", 0)},
			call("put elsewhere", Put("x", "1")), call("delete nothing", Delete("e/1")),
			call("two keys at once", Do(Ops(Put("e/b", "1"), Put("e/a", "1"))...)), Step{"GRPC-15 the first put", Leaders("o", 1)},
			call("change the other", Put("e/a", "2")), call("change the first", Put("e/b", "2")), Step{"GRPC-15 the first", Leaders("o", 1)},
			call("delete the first", Delete("e/b")), Step{"GRPC-15 the other", Leaders("o", 1)},
			call("delete and put at once", Do(Ops(Delete("e/a"), Put("e/c", "1"))...)), Step{"GRPC-15 the new one", Leaders("o", 1)},
		)},
		{Name: "compaction", Steps: append(leases(1),
			call("one", campaign(1, "1")), Step{"open", Observe("o", "e")}, Step{"the leader", Leaders("o", 1)},
			call("proclaim", proclaim("e/1", 2, 1, "2")), call("put", Put("x", "1")), call("compact", Compact(4)), Step{"GRPC-15 once", Leaders("o", 1)},
			call("proclaim after", proclaim("e/1", 2, 1, "3")), Step{"GRPC-15 goes on", Leaders("o", 1)},
		)},
	})
}
