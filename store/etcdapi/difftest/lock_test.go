package difftest

import (
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

func lock(name string, lease int64) *v3lockpb.LockRequest {
	return &v3lockpb.LockRequest{Name: []byte(name), Lease: lease}
}

func unlock(key string) *v3lockpb.UnlockRequest { return &v3lockpb.UnlockRequest{Key: []byte(key)} }

func revoke(id int64) *pb.LeaseRevokeRequest { return &pb.LeaseRevokeRequest{ID: id} }

// leases are granted at the start of a case.
func leases(ids ...int64) []Step {
	var steps []Step
	for _, id := range ids {
		steps = append(steps, call("grant "+string('0'+rune(id)), Grant(id, 1000)))
	}
	return steps
}

func TestLock(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "alone", Steps: append(leases(1, 2),
			call("GRPC-15 lock", lock("l", 1)), call("GRPC-15 the key", Get("l/1")),
			call("GRPC-15 lock again", lock("l", 1)), call("put elsewhere", Put("x", "1")), call("GRPC-15 header of now", lock("l", 1)),
			call("GRPC-15 unlock", unlock("l/1")), call("GRPC-15 unlock nothing", unlock("l/1")),
			call("GRPC-15 lock by another", lock("l", 2)),
			call("GRPC-15 unknown lease", lock("m", 77)), call("GRPC-15 negative lease", lock("m", -1)),
			call("GRPC-15 unlock without key", unlock("")), call("GRPC-15 unlock any key", unlock("x")),
			call("GRPC-15 no name", lock("", 1)), call("GRPC-15 odd name", lock("\xff\x00", 1)), call("GRPC-15 large lease", Grant(0xabcdef01, 300)), call("GRPC-15 hexadecimal", lock("m", 0xabcdef01)),
		)},
		{Name: "queue", Steps: append(leases(1, 2, 3),
			call("one", lock("l", 1)),
			Step{"two", Begin("two", "l/2", lock("l", 2))}, Step{"three", Begin("three", "l/3", lock("l", 3))},
			Step{"GRPC-15 two waits", Waits("two")},
			call("unlock", unlock("l/1")), Step{"GRPC-15 two has it", End("two")}, Step{"GRPC-15 three waits", Waits("three")},
			call("one again", Get("l/1")), Step{"one behind three", Begin("one", "l/1", lock("l", 1))},
			call("unlock two", unlock("l/2")), Step{"GRPC-15 three has it", End("three")}, Step{"GRPC-15 one waits", Waits("one")},
			call("unlock three by deleting", Delete("l/3")), Step{"GRPC-15 one has it", End("one")},
		)},
		{Name: "middle of the queue leaves", Steps: append(leases(1, 2, 3),
			call("one", lock("l", 1)),
			Step{"two", Begin("two", "l/2", lock("l", 2))}, Step{"three", Begin("three", "l/3", lock("l", 3))},
			Step{"two gives up", GiveUp("two")}, Step{"GRPC-15 its key is deleted", WaitGone("l/2", 0)}, Step{"GRPC-15 three waits", Waits("three")},
			call("unlock", unlock("l/1")), Step{"GRPC-15 three has it", End("three")},
		)},
		{Name: "lease revoked while waiting", Steps: append(leases(1, 2),
			call("one", lock("l", 1)), Step{"two", Begin("two", "l/2", lock("l", 2))},
			call("revoke", revoke(2)), Step{"V-20 the call", Waits("two")},
			call("unlock", unlock("l/1")), Step{"GRPC-15 expired", End("two")},
		)},
		{Name: "given up by one of two calls", Steps: append(leases(1, 2),
			call("one", lock("l", 1)),
			Step{"two", Begin("two", "l/2", lock("l", 2))}, Step{"two again", Begin("again", "l/2", lock("l", 2))},
			Step{"GRPC-15 both wait", Waits("two")}, Step{"GRPC-15 both wait indeed", Waits("again")},
			Step{"one of them gives up", GiveUp("again")}, Step{"GRPC-15 the key is deleted", WaitGone("l/2", 0)},
			Step{"V-20 the other call", Waits("two")}, call("unlock", unlock("l/1")), Step{"GRPC-15 expired", End("two")},
		)},
		{Name: "key made anew while waiting", Steps: append(leases(1, 2, 3),
			call("one", lock("l", 1)), Step{"two", Begin("two", "l/2", lock("l", 2))}, Step{"three", Begin("three", "l/3", lock("l", 3))},
			call("two's key is deleted", Delete("l/2")), Step{"V-20 the call", Waits("two")},
			Step{"two again", Begin("again", "l/2", lock("l", 2))},
			call("unlock", unlock("l/1")), Step{"GRPC-15 three has it", End("three")}, Step{"V-19 two owners", End("two")},
			call("unlock three", unlock("l/3")), Step{"GRPC-15 now it is two's", End("again")},
		)},
		{Name: "holder's lease ends", Steps: append(leases(2),
			call("short", Grant(1, 2)), call("one", lock("l", 1)), Step{"two", Begin("two", "l/2", lock("l", 2))},
			Step{"GRPC-15 two has it", End("two")}, call("GRPC-15 one is gone", Get("l/1")),
		)},
		{Name: "waiter's lease expires", Steps: append(leases(1),
			call("one", lock("l", 1)), call("short", Grant(2, 2)), Step{"two", Begin("two", "l/2", lock("l", 2))},
			Step{"LSE-10 the waiter's key goes", WaitGone("l/2", time.Second)},
			call("unlock", unlock("l/1")), Step{"GRPC-15 expired", End("two")},
		)},
		{Name: "strangers in the queue", Steps: append(leases(1, 2),
			call("a key", Put("l/x", "1")), Step{"one", Begin("one", "l/1", lock("l", 1))}, Step{"GRPC-15 one waits", Waits("one")},
			call("changed", Put("l/x", "2")), Step{"GRPC-15 one waits still", Waits("one")},
			call("deleted", Delete("l/x")), Step{"GRPC-15 one has it", End("one")},
			call("the lease's key by hand", Put("h/2", "1")), call("GRPC-15 is taken for its own", lock("h", 2)),
			call("lock below", lock("l/1", 2)), Step{"GRPC-15 holds up nobody before it", Call(lock("l", 1))},
			call("unlock", unlock("l/1")), Step{"GRPC-15 but those after it", Begin("one", "l/1", lock("l", 1))}, Step{"GRPC-15 waits", Waits("one")},
			call("unlock below", unlock("l/1/2")), Step{"GRPC-15 goes on", End("one")},
		)},
		{Name: "compaction while waiting", Steps: append(leases(1, 2),
			call("one", lock("l", 1)), Step{"two", Begin("two", "l/2", lock("l", 2))}, Step{"waits", Waits("two")},
			call("put", Put("x", "1")), call("put again", Put("x", "2")), call("compact", Compact(4)), Step{"GRPC-15 waits", Waits("two")},
			call("unlock", unlock("l/1")), Step{"GRPC-15 two has it", End("two")},
		)},
		{Name: "without lease", Diverge: true, Steps: []Step{
			{"GRPC-15 a lease of the server", OwnLease(lock("l", 0), "l")}, {"GRPC-15 leases", LeaseCount()},
		}},
	})
}

// TestLockAccess has access control on: user u may do everything below l/ and e/,
// and user v nothing.
func TestLockAccess(t *testing.T) {
	const all = authpb.Permission_READWRITE
	u, v := As("u"), As("v")
	steps := append(leases(1, 2, 3),
		call("root", userAdd("root", "pw")), call("role root", &pb.AuthRoleAddRequest{Name: "root"}), call("root is root", userGrant("root", "root")),
		call("user u", userAdd("u", "x")), call("user v", userAdd("v", "x")), call("role", &pb.AuthRoleAddRequest{Name: "r"}),
		call("permit l", permit("r", all, "l/", "l0")), call("permit e", permit("r", all, "e/", "e0")), call("give it", userGrant("u", "r")),
		call("enable", &pb.AuthEnableRequest{}),
		Step{"root logs in", Login("root", "pw")}, Step{"u logs in", Login("u", "x")}, Step{"v logs in", Login("v", "x")},
		call("AUT-10 nobody", lock("l", 1)), call("AUT-10 bad token", lock("l", 1), With("token", "nonsense.1")),
		call("AUT-15 v", lock("l", 1), v), call("AUT-15 u", lock("l", 1), u), call("AUT-15 u elsewhere", lock("m", 1), u),
		call("AUT-15 v unlocks", unlock("l/1"), v), call("AUT-15 nobody unlocks", unlock("l/1")), call("AUT-15 v campaigns", campaign(1, "x"), v),
		call("AUT-15 v looks", &v3electionpb.LeaderRequest{Name: []byte("e")}, v), call("AUT-15 v resigns", resign("e/1", 2, 1), v), call("AUT-15 v proclaims", proclaim("e/1", 2, 1, "x"), v),
		Step{"v observes", Observe("o", "e", v)}, Step{"V-23 v observes nothing", End("o")},
		Step{"two", Begin("two", "l/2", lock("l", 2), u)},
		call("a change while it waits", userAdd("later", "x"), As("root")),
		call("AUT-15 u unlocks", unlock("l/1"), u), Step{"AUT-12 the change does not matter", End("two")},
		Step{"three", Begin("three", "l/3", lock("l", 3), u)}, Step{"three waits", Waits("three")}, Step{"three gives up", GiveUp("three")}, Step{"a moment", Pause(quietTime)},
		call("V-22 its key", Get("l/3"), u),
	)
	suite.Run(t, []Case{{Name: "on", Diverge: true, Steps: steps}})
}
