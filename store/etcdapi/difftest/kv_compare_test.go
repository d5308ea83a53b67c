package difftest

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// compareSteps makes every target x result x stored side of interest.
func compareSteps() []Step {
	steps := []Step{
		call("grant", Grant(5, 1000)),
		call("data k", PutLease("k", "m", 5)), // create 2, version 3, mod 4, lease 5, value m
		call("data k again", PutLease("k", "m", 5)),
		call("data k third", PutLease("k", "m", 5)),
		call("data l", Put("l", "m")),
	}
	sides := []int64{0, 1, 2, 3, 4, 5, 6, -1}
	values := []string{"", "a", "m", "mm", "z"}
	for _, key := range []string{"k", "missing"} {
		for result := range pb.Compare_CompareResult(4) {
			for _, n := range sides {
				for _, c := range []*pb.Compare{Version(key, result, n), CreateRev(key, result, n), ModRev(key, result, n), LeaseOf(key, result, n)} {
					steps = append(steps, call(fmt.Sprintf("TXN-20 TXN-21 %v(%s) %v %d", c.Target, key, result, n), Txn(If(c), nil, nil)))
				}
			}
			for _, v := range values {
				steps = append(steps, call(fmt.Sprintf("TXN-20 TXN-22 VALUE(%s) %v %q", key, result, v), Txn(If(Value(key, result, v)), nil, nil)))
			}
		}
	}
	return steps
}

func TestKVCompare(t *testing.T) {
	check := func(name string, c ...*pb.Compare) Step { return call(name, Txn(c, Ops(Get("a")), nil)) }
	suite.Run(t, []Case{
		{Name: "single", Steps: compareSteps()},
		{Name: "range", Steps: []Step{
			call("a", Put("a", "1")), call("b", Put("b", "1")), call("c", Put("c", "2")), call("b again", Put("b", "1")),
			check("TXN-24 all create above", Over(CreateRev("a", Greater, 1), "z")),
			check("TXN-24 one not", Over(CreateRev("a", Greater, 2), "z")),
			check("TXN-24 values equal", Over(Value("a", Equal, "1"), "c")),
			check("TXN-24 values not all equal", Over(Value("a", Equal, "1"), "d")),
			check("TXN-24 value not equal", Over(Value("a", NotEqual, "3"), "\x00")),
			check("TXN-24 from b on", Over(ModRev("b", Greater, 3), "\x00")),
			check("TXN-24 versions", Over(Version("a", Less, 2), "z")),
			check("TXN-24 lease of none", Over(LeaseOf("a", Equal, 0), "z")),
			check("TXN-24 empty range create 0", Over(CreateRev("x", Equal, 0), "z")),
			check("TXN-24 empty range create above 0", Over(CreateRev("x", Greater, 0), "z")),
			check("TXN-24 empty range value", Over(Value("x", Equal, ""), "z")),
			check("TXN-24 empty range value not equal", Over(Value("x", NotEqual, "q"), "z")),
			check("TXN-24 end below key", Over(CreateRev("c", Equal, 0), "a")),
			check("TXN-24 from the last on", Over(CreateRev("zz", Equal, 0), "\x00")),
		}},
		{Name: "odd", Steps: []Step{
			call("a", Put("a", "1")), call("e", Put("e", "")),
			check("TXN-23 no union for version", &pb.Compare{Key: []byte("a"), Target: pb.Compare_VERSION}),
			check("TXN-23 no union for a missing key", &pb.Compare{Key: []byte("nope"), Target: pb.Compare_MOD}),
			check("TXN-23 no union for value", &pb.Compare{Key: []byte("a"), Target: pb.Compare_VALUE}),
			check("TXN-23 no union for the empty value", &pb.Compare{Key: []byte("e"), Target: pb.Compare_VALUE}),
			check("TXN-23 mismatching union", &pb.Compare{Key: []byte("a"), Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_ModRevision{ModRevision: 1}}),
			check("TXN-23 mismatching union greater", &pb.Compare{Key: []byte("a"), Target: pb.Compare_VERSION, Result: Greater, TargetUnion: &pb.Compare_ModRevision{ModRevision: 1}}),
			check("TXN-23 number for value", &pb.Compare{Key: []byte("e"), Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Version{Version: 1}}),
			check("TXN-25 V-11 unknown target", &pb.Compare{Key: []byte("a"), Target: 9}),
			check("TXN-25 V-11 unknown target greater", &pb.Compare{Key: []byte("a"), Target: 9, Result: Greater}),
			check("TXN-25 V-11 unknown result", &pb.Compare{Key: []byte("a"), Result: 9, TargetUnion: &pb.Compare_Version{Version: 5}}),
			check("TXN-26 none"),
		}},
	})
}

func TestCompact(t *testing.T) {
	writes := func(more ...Step) []Step {
		return append([]Step{
			call("a=1", Put("a", "1")), call("a=2", Put("a", "2")), call("b=1", Put("b", "1")), call("delete b", Delete("b")),
			call("a=3", Put("a", "3")), call("c=1", Put("c", "1")), call("b=2", Put("b", "2")),
		}, more...)
	}
	background := func(rev int64) *pb.CompactionRequest { return &pb.CompactionRequest{Revision: rev} }
	suite.Run(t, []Case{
		{Name: "fresh store", Steps: []Step{
			call("CMP-1 future", Compact(2)),
			call("CMP-1 revision 1", Compact(1)),
			call("CMP-1 revision 1 again", Compact(1)),
			call("CMP-1 revision 0 after 1", Compact(0)),
			call("CMP-1 still readable", All(1)),
			call("MNT-3 hash", &pb.HashKVRequest{}),
		}},
		{Name: "fresh store revision 0", Steps: []Step{
			call("CMP-1 V-10 revision 0", Compact(0)),
			call("CMP-1 V-10 revision 0 again", Compact(0)),
		}},
		{Name: "negative revision", Steps: writes(call("CMP-1 negative", Compact(-1)), call("CMP-1 very negative", Compact(-9)), call("CMP-1 then 3", Compact(3)))},
		{Name: "in the background", Steps: writes(
			call("CMP-2 CMP-5 compact 5", background(5)),
			call("CMP-3 below", All(4)),
			call("CMP-3 at", All(5)),
			call("CMP-1 again", background(5)),
			call("CMP-6 again physical", Compact(5)),
			call("CMP-1 future", background(9)),
			call("CMP-1 current", background(8)),
			call("CMP-6 wait for it", Compact(8)),
			call("CMP-1 current readable", All(8)),
		)},
		{Name: "tombstones", Steps: writes(
			call("CMP-4 at the tombstone", Compact(5)),
			Step{"open", Open("w")},
			Step{"CMP-4 watch from the tombstone on", Ask("w", 2, Create(&pb.WatchCreateRequest{Key: []byte("b"), StartRevision: 5}))},
			call("CMP-4 above the tombstone", Compact(6)),
			Step{"CMP-4 watch from 6 on", Ask("w", 2, Create(&pb.WatchCreateRequest{Key: []byte("b"), StartRevision: 6}))},
			call("delete all", DeleteAll("\x00", "\x00")),
			Step{"CMP-4 both watches see b go", RecvByID("w", 2)},
			call("REV-6 compact everything", Compact(9)),
			call("REV-6 revision stays", Get("a")),
			call("REV-6 put", Put("a", "new")),
			call("REV-2 new generation", Get("a")),
		)},
		{Name: "many keys", Steps: []Step{
			{"data", Quietly(2500, func(i int) proto.Message { return Put(fmt.Sprintf("k%d", i%50), fmt.Sprint(i)) })},
			call("CMP-5 compact", background(2400)),
			call("CMP-3 read at", List("k1", "k2")),
			call("CMP-6 physical while the other one may run", Compact(2450)),
			call("CMP-4 MNT-3 hash", &pb.HashKVRequest{Revision: 2460}),
		}},
	})
}
