package difftest

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// puts is n put ops on distinct keys below prefix.
func puts(prefix string, n int) []*pb.RequestOp {
	var reqs []any
	for i := range n {
		reqs = append(reqs, Put(fmt.Sprintf("%s%03d", prefix, i), "v"))
	}
	return Ops(reqs...)
}

func TestKVTxn(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "limits", Steps: txnLimitSteps()},
		{Name: "checks", Steps: txnCheckSteps()},
		{Name: "duplicates", Steps: txnDuplicateSteps()},
		{Name: "hole of the duplicate check", Diverge: true, Steps: []Step{
			call("TXN-5 data", Put("b", "1")),
			call("TXN-5 V-4 put then delete from a on", Do(Ops(Put("d", "1"), DeleteAll("a", "\x00"))...)),
		}},
		{Name: "hole of the duplicate check the other way", Diverge: true, Steps: []Step{
			call("TXN-5 data", Put("b", "1")),
			call("TXN-5 V-4 delete from a on then put", Do(Ops(DeleteAll("a", "\x00"), Put("d", "1"))...)),
		}},
		{Name: "hole between siblings", Diverge: true, Steps: []Step{
			call("TXN-4 put then delete", Do(Ops(Do(Ops(Put("d", "1"))...), Do(Ops(Delete("d"))...))...)),
		}},
		{Name: "evaluation", Steps: txnEvaluationSteps()},
		{Name: "kubernetes", Steps: txnKubernetesSteps()},
	})
}

func txnLimitSteps() []Step {
	compares := func(n int) (c []*pb.Compare) {
		for range n {
			c = append(c, Version("a", Equal, 0))
		}
		return c
	}
	nested := func(outer, inner int, siblings int) *pb.TxnRequest {
		ops := puts("outer", outer)
		for i := range siblings {
			ops = append(ops, Ops(Do(puts(fmt.Sprintf("inner%d-", i), inner)...))...)
		}
		return Do(ops...)
	}
	return []Step{
		call("TXN-1 128 puts", Do(puts("a", 128)...)),
		call("TXN-1 129 puts", Do(puts("a", 129)...)),
		call("TXN-1 128 failure ops", Txn(If(Version("a000", Equal, 99)), nil, puts("b", 128))),
		call("TXN-1 129 failure ops", Txn(nil, nil, puts("b", 129))),
		call("TXN-1 128 compares", Txn(compares(128), nil, nil)),
		call("TXN-1 129 compares", Txn(compares(129), nil, nil)),
		call("TXN-1 128 in each part", Txn(compares(128), puts("c", 128), puts("c", 128))),
		call("TXN-1 nested 1 and 127", nested(0, 127, 1)),
		call("TXN-1 nested 1 and 128", nested(0, 128, 1)),
		call("TXN-1 nested 62 and two of 66", nested(60, 66, 2)),
		call("TXN-1 nested 62 and two of 67", nested(60, 67, 2)),
		call("TXN-1 nested 62 and two of 68", nested(60, 68, 2)),
		call("TXN-1 129 ops before a bad key", Txn(If(&pb.Compare{}), puts("a", 129), nil)),
		call("TXN-1 three levels", Do(Ops(Do(Ops(Do(puts("deep", 126)...))...))...)),
		call("TXN-1 three levels too many", Do(Ops(Do(Ops(Do(puts("deep", 127)...))...))...)),
	}
}

func txnCheckSteps() []Step {
	empty := []*pb.RequestOp{{}}
	badPut := Ops(&pb.PutRequest{})
	return []Step{
		call("data", Put("a", "1")),
		call("TXN-11 empty", &pb.TxnRequest{}),
		call("TXN-11 REV-4 empty with a true compare", Txn(If(Version("a", Equal, 1)), nil, nil)),
		call("TXN-11 empty with a false compare", Txn(If(Version("a", Equal, 2)), nil, nil)),
		call("TXN-2 compare without key", Txn(If(&pb.Compare{}), nil, nil)),
		call("TXN-3 op without content", Do(empty...)),
		call("TXN-3 failure op without content", Txn(nil, nil, empty)),
		call("TXN-3 put without key", Do(badPut...)),
		call("TXN-3 put without key in the branch not taken", Txn(nil, nil, badPut)),
		call("TXN-3 range without key", Do(Ops(&pb.RangeRequest{})...)),
		call("TXN-3 delete without key", Do(Ops(&pb.DeleteRangeRequest{})...)),
		call("TXN-3 range with a bad order", Do(Ops(&pb.RangeRequest{Key: []byte("a"), SortOrder: 8})...)),
		call("TXN-3 range with a bad target", Do(Ops(&pb.RangeRequest{Key: []byte("a"), SortTarget: 8})...)),
		call("TXN-3 put with ignore_value and value", Do(Ops(&pb.PutRequest{Key: []byte("a"), Value: []byte("1"), IgnoreValue: true})...)),
		call("TXN-3 put with ignore_lease and lease", Do(Ops(&pb.PutRequest{Key: []byte("a"), Lease: 3, IgnoreLease: true})...)),
		call("TXN-2 success before failure", Txn(nil, empty, Ops(&pb.PutRequest{Key: []byte("a"), Lease: 3, IgnoreLease: true}))),
		call("TXN-2 op check before duplicates", Do(Ops(Put("d", "1"), Put("d", "2"), &pb.PutRequest{})...)),
		call("TXN-3 nested op without content", Do(Ops(Do(empty...))...)),
		call("TXN-3 nested compare without key", Do(Ops(Txn(If(&pb.Compare{}), nil, nil))...)),
		call("TXN-3 nested empty", Do(Ops(&pb.TxnRequest{})...)),
		call("TXN-7 future range", Do(Ops(All(3))...)),
		call("TXN-7 future range in a writing txn", Do(Ops(Put("a", "2"), All(3))...)),
		call("TXN-7 future range in the branch not taken", Txn(If(Version("a", Equal, 9)), Ops(All(3)), nil)),
		call("TXN-7 unknown lease", Do(Ops(PutLease("a", "2", 77))...)),
		call("TXN-7 unknown lease in the branch not taken", Txn(nil, nil, Ops(PutLease("a", "2", 77)))),
		call("TXN-7 ignore_value of a key the txn makes", Do(Ops(Put("new", "1"), Do(Ops(&pb.PutRequest{Key: []byte("other"), IgnoreValue: true})...))...)),
		call("TXN-7 ignore_lease missing key", Do(Ops(&pb.PutRequest{Key: []byte("nope"), IgnoreLease: true})...)),
		call("TXN-7 ignore_value after delete", Do(Ops(&pb.PutRequest{Key: []byte("a"), IgnoreValue: true})...)),
		call("TXN-13 V-5 negative range revision before the first compaction", Do(Ops(All(-1))...)),
		call("TXN-13 V-5 range revision -2 before the first compaction", Do(Ops(All(-2))...)),
		call("more", Put("a", "3")),
		call("compact 3", Compact(3)),
		call("TXN-7 compacted range", Do(Ops(All(2))...)),
		call("TXN-7 range at compacted", Do(Ops(All(3))...)),
		call("TXN-7 compacted range aborts the puts", Do(Ops(Put("a", "9"), All(2))...)),
		call("TXN-7 nothing was put", Get("a")),
		call("TXN-13 V-5 negative range revision after a compaction", Do(Ops(All(-1))...)),
	}
}

func txnDuplicateSteps() []Step {
	return []Step{
		call("TXN-4 put put", Do(Ops(Put("d", "1"), Put("d", "2"))...)),
		call("TXN-4 put delete", Do(Ops(Put("d", "1"), Delete("d"))...)),
		call("TXN-4 delete put", Do(Ops(Delete("d"), Put("d", "1"))...)),
		call("TXN-4 range delete over put", Do(Ops(Put("d", "1"), DeleteAll("a", "z"))...)),
		call("TXN-4 range delete beside put", Do(Ops(Put("d", "1"), DeleteAll("e", "z"))...)),
		call("TXN-4 range delete ends at put", Do(Ops(Put("d", "1"), DeleteAll("a", "d"))...)),
		call("TXN-4 overlapping deletes", Do(Ops(DeleteAll("a", "z"), Delete("d"), DeleteAll("c", "e"))...)),
		call("TXN-4 both branches of one level", Txn(nil, Ops(Put("d", "1")), Ops(Put("d", "2")))),
		call("TXN-4 duplicates in the branch not taken", Txn(nil, nil, Ops(Put("d", "1"), Put("d", "2")))),
		call("TXN-4 nested both branches", Do(Ops(Txn(nil, Ops(Put("d", "1")), Ops(Put("d", "2"))))...)),
		call("TXN-4 nested and outer put", Do(Ops(Put("d", "1"), Do(Ops(Put("d", "2"))...))...)),
		call("TXN-4 nested failure and outer put", Do(Ops(Put("d", "1"), Txn(nil, nil, Ops(Put("d", "2"))))...)),
		call("TXN-4 nested delete and outer put", Do(Ops(Put("d", "1"), Do(Ops(DeleteAll("a", "z"))...))...)),
		call("TXN-4 nested failure delete and outer put", Do(Ops(Put("d", "1"), Txn(nil, nil, Ops(DeleteAll("a", "z"))))...)),
		call("TXN-4 siblings", Do(Ops(Do(Ops(Put("d", "1"))...), Do(Ops(Put("d", "2"))...))...)),
		call("TXN-4 siblings delete and put", Do(Ops(Do(Ops(Delete("d"))...), Do(Ops(Put("d", "1"))...))...)),
		call("TXN-4 nested put with its other branch deleting", Do(Ops(Txn(nil, Ops(Put("d", "1")), Ops(Delete("d"))))...)),
		call("TXN-4 ranges do not count", Do(Ops(Put("d", "1"), Get("d"), All(0))...)),
	}
}

func txnEvaluationSteps() []Step {
	seen := Txn(If(Value("n", Equal, "new")), Ops(Put("n2", "saw-new")), Ops(Put("n2", "saw-old")))
	return []Step{
		call("grant", Grant(9, 1000)),
		call("data n", Put("n", "old")),
		call("data a", PutLease("a", "1", 9)),
		call("TXN-6 nested compare sees the state before", Do(Ops(Put("n", "new"), seen, Get("n2"))...)),
		call("TXN-8 TXN-9 HDR-2 ops in order", Do(Ops(Get("a"), Put("a", "2"), Get("a"), Delete("n"), Get("n"), All(0))...)),
		call("TXN-8 range at the old revision inside", Do(Ops(Put("a", "3"), &pb.RangeRequest{Key: []byte("a"), Revision: 4})...)),
		call("TXN-9 delete of nothing first", Do(Ops(Delete("nope"), Put("p", "1"), Delete("nope2"))...)),
		call("TXN-9 REV-4 only deletes of nothing", Do(Ops(Delete("nope"), DeleteAll("x", "z"))...)),
		call("TXN-9 prev_kv", Do(Ops(&pb.PutRequest{Key: []byte("p"), Value: []byte("2"), PrevKv: true}, &pb.DeleteRangeRequest{Key: []byte("a"), PrevKv: true})...)),
		call("TXN-9 prev_kv of a key deleted in the txn", Do(Ops(DeleteAll("p", "q"), &pb.PutRequest{Key: []byte("r"), Value: []byte("1"), PrevKv: true})...)),
		call("HDR-3 nested answers", Do(Ops(Do(Ops(Put("x", "1"), Do(Ops(Get("x"), Put("y", "1"))...))...), Txn(If(Version("x", Greater, 0)), Ops(Get("x")), Ops(Get("y"))))...)),
		call("TXN-12 only ranges", Do(Ops(Get("x"), &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), CountOnly: true}, &pb.RangeRequest{Key: []byte("x"), Serializable: true})...)),
		call("TXN-12 range at a revision", Do(Ops(&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Revision: 3, Limit: 1})...)),
		call("TXN-10 failure branch", Txn(If(Version("x", Equal, 0)), Ops(Put("x", "no")), Ops(Put("x", "yes"), Get("x")))),
		call("TXN-26 two compares, one false", Txn(If(Version("x", Greater, 0), Version("x", Equal, 0)), Ops(Get("x")), Ops(Get("y")))),
		call("TXN-9 keys only and sorted in a txn", Do(Ops(&pb.RangeRequest{Key: []byte("x"), RangeEnd: []byte("z"), KeysOnly: true}, &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), SortTarget: pb.RangeRequest_MOD, SortOrder: pb.RangeRequest_DESCEND, Limit: 2})...)),
		call("PUT-3 lease in a txn", Do(Ops(PutLease("l", "1", 9), PutLease("m", "1", 9))...)),
		call("PUT-7 ignore_lease in a txn", Do(Ops(&pb.PutRequest{Key: []byte("l"), Value: []byte("2"), IgnoreLease: true, PrevKv: true}, &pb.PutRequest{Key: []byte("m"), IgnoreValue: true})...)),
		call("PUT-7 leases after", &pb.LeaseTimeToLiveRequest{ID: 9, Keys: true}),
	}
}

func txnKubernetesSteps() []Step {
	create := func(v string) *pb.TxnRequest {
		return Txn(If(ModRev("/r/pods/p", Equal, 0)), Ops(Put("/r/pods/p", v)), nil)
	}
	update := func(rev int64, v string) *pb.TxnRequest {
		return Txn(If(ModRev("/r/pods/p", Equal, rev)), Ops(Put("/r/pods/p", v)), Ops(Get("/r/pods/p")))
	}
	remove := func(rev int64) *pb.TxnRequest {
		return Txn(If(ModRev("/r/pods/p", Equal, rev)), Ops(Delete("/r/pods/p")), Ops(Get("/r/pods/p")))
	}
	compaction := func(version int64, v string) *pb.TxnRequest {
		return Txn(If(Version("compact_rev_key", Equal, version)), Ops(Put("compact_rev_key", v)), Ops(Get("compact_rev_key")))
	}
	return []Step{
		call("TXN-21 create", create("1")),
		call("TXN-21 create again", create("2")),
		call("TXN-20 update", update(2, "2")),
		call("TXN-20 update conflict", update(2, "3")),
		call("TXN-20 delete conflict", remove(2)),
		call("TXN-20 delete", remove(3)),
		call("TXN-20 update of a deleted key", update(3, "4")),
		call("TXN-20 delete of a deleted key", remove(3)),
		call("TXN-21 create after delete", create("5")),
		call("TXN-20 compaction key", compaction(0, "0")),
		call("TXN-20 compaction key again", compaction(0, "0")),
		call("TXN-20 compaction key next", compaction(1, "4")),
		call("CMP-10 compact", &pb.CompactionRequest{Revision: 4}),
	}
}
