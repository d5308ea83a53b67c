package difftest

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

func TestGolden(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "18.1 revisions and compaction", Steps: goldenRevisions()},
		{Name: "18.2 txn", Steps: goldenTxn()},
		{Name: "18.3 watch and compaction", Steps: goldenWatchCompaction()},
		{Name: "18.4 catch-up and progress", Steps: goldenProgress()},
		{Name: "18.5 lease", Steps: goldenLease()},
		{Name: "18.6 hash", Steps: goldenHash()},
	})
}

func goldenRevisions() []Step {
	steps := []Step{
		call("put a=1", Put("a", "1")), call("put a=2", Put("a", "2")), call("put b=1", Put("b", "1")), call("delete b", Delete("b")),
		call("put a=3", Put("a", "3")), call("put c=1", Put("c", "1")), call("put b=2", Put("b", "2")),
		call("CMP-1 compact 5", Compact(5)), call("CMP-1 compact 5 again", Compact(5)),
		call("CMP-1 compact 4", Compact(4)), call("CMP-1 compact 0", Compact(0)),
	}
	for rev := range int64(10) {
		steps = append(steps, call(fmt.Sprintf("RNG-7 all at %d", rev), All(rev)))
	}
	return append(steps,
		call("CMP-1 compact 8", Compact(8)), call("RNG-7 all at 8 still", All(8)),
		call("TXN-7 range 7", Do(Ops(All(7))...)), call("TXN-7 range 8", Do(Ops(All(8))...)),
		call("TXN-13 V-5 range -1", Do(Ops(All(-1))...)), call("RNG-7 plain -1", All(-1)),
		call("delete all", DeleteAll("\x00", "\x00")), call("CMP-1 compact 9", Compact(9)), call("REV-6 header", Get("a")))
}

func goldenTxn() []Step {
	return []Step{
		{"open", Open("w")},
		{"watch", Ask("w", 1, Create(&pb.WatchCreateRequest{Key: []byte("t/"), RangeEnd: []byte("t0"), PrevKv: true}))},
		call("put t/a", Put("t/a", "1")),
		{"event t/a", Recv("w", 1)},
		call("TXN-8 TXN-9 mixed", Do(Ops(Put("t/b", "1"), List("t/", "t0"), Put("t/c", "2"), List("t/", "t0"), Delete("t/a"), List("t/", "t0"), Delete("nope"))...)),
		{"TOP-5 WCH-23 events", Recv("w", 1)},
		call("TXN-9 delete headers", Do(Ops(Delete("zzz"), Put("t/p", "1"), Delete("zzz"))...)),
		call("TXN-9 range headers", Do(Ops(Get("t/b"), Put("t/b", "7"), Get("t/b"))...)),
		{"events of both", Recv("w", 2)},
		call("n=old", Put("n", "old")),
		call("TXN-6 nested compare", Do(Ops(Put("n", "new"), Txn(If(Value("n", Equal, "new")), Ops(Put("n2", "saw-new")), Ops(Put("n2", "saw-old"))), Get("n2"))...)),
	}
}

func goldenWatchCompaction() []Step {
	steps := []Step{
		call("cc=1", Put("cc", "1")), call("cc=2", Put("cc", "2")), call("cc=3", Put("cc", "3")), call("delete cc", Delete("cc")),
		call("cc=4", Put("cc", "4")), call("compact 5", Compact(5)),
	}
	for _, start := range []int64{4, 5, 6, -1} {
		w := fmt.Sprint("w", start)
		n := 2
		if start < 0 {
			n = 1
		}
		steps = append(steps, Step{"open " + w, Open(w)},
			Step{fmt.Sprintf("WCH-6 WCH-8 WCH-25 start %d", start), Ask(w, n, Create(&pb.WatchCreateRequest{Key: []byte("cc"), StartRevision: start, PrevKv: true}))})
	}
	return steps
}

func goldenProgress() []Step {
	create := func(k string, start int64) *pb.WatchRequest {
		return Create(&pb.WatchCreateRequest{Key: []byte(k), StartRevision: start})
	}
	return []Step{
		{"2500 puts", Quietly(2500, func(i int) proto.Message { return Put("u/1", fmt.Sprint(i)) })},
		call("put u/2", Put("u/2", "x")),
		{"open c", Open("c")},
		{"WCH-26 catch-up of 2501 events", Ask("c", 4, Create(&pb.WatchCreateRequest{Key: []byte("u/"), RangeEnd: []byte("u0"), StartRevision: 2}))},
		{"open w", Open("w")},
		{"WCH-42 progress without watcher", Quiet("w", Progress())},
		{"WCH-10 watch from now on", Ask("w", 1, create("p", 0))},
		{"WCH-41 TOP-2 progress", Ask("w", 1, Progress())},
		call("put elsewhere", Put("else", "1")),
		{"WCH-41 progress moves", Ask("w", 1, Progress())},
		{"WCH-7 watch from the future on", Ask("w", 1, create("q", 2560))},
		{"WCH-44 progress is blocked", Quiet("w", Progress())},
		{"WCH-30 cancel", Ask("w", 1, Cancel(1))},
		{"WCH-44 progress again", Ask("w", 1, Progress())},
		{"WCH-10 id 2", Ask("w", 1, create("r", 0))},
		{"WCH-11 id 5", Ask("w", 1, Create(&pb.WatchCreateRequest{Key: []byte("s"), WatchId: 5}))},
		{"WCH-10 next is 3", Ask("w", 1, create("t", 0))},
		{"WCH-30 cancel 5", Ask("w", 1, Cancel(5))},
		{"WCH-13 5 again", Ask("w", 1, Create(&pb.WatchCreateRequest{Key: []byte("s"), WatchId: 5}))},
	}
}

func goldenLease() []Step {
	return []Step{
		call("LSE-2 ttl 0", Grant(1, 0)), call("LSE-2 ttl -10", Grant(2, -10)), call("LSE-2 ttl 1", Grant(3, 1)), call("LSE-2 ttl 2", Grant(4, 2)),
		call("grant 1234", Grant(1234, 60)), call("grant 1235", Grant(1235, 60)),
		call("put L/b", PutLease("L/b", "1", 1234)), call("put L/a", PutLease("L/a", "1", 1234)),
		call("LSE-8 keys", &pb.LeaseTimeToLiveRequest{ID: 1234, Keys: true}),
		call("detach L/a", Put("L/a", "2")), call("LSE-12 detached", &pb.LeaseTimeToLiveRequest{ID: 1234, Keys: true}),
		call("move L/b", PutLease("L/b", "1", 1235)), call("LSE-12 moved from", &pb.LeaseTimeToLiveRequest{ID: 1234, Keys: true}),
		call("LSE-12 moved to", &pb.LeaseTimeToLiveRequest{ID: 1235, Keys: true}),
		call("delete L/b", Delete("L/b")), call("LSE-12 deleted", &pb.LeaseTimeToLiveRequest{ID: 1235, Keys: true}),
		{"open", Open("w")},
		{"watch", Ask("w", 1, Create(&pb.WatchCreateRequest{Key: []byte("l/"), RangeEnd: []byte("l0"), PrevKv: true}))},
		call("l/3", PutLease("l/3", "3", 1234)), call("l/1", PutLease("l/1", "1", 1234)), call("l/2", PutLease("l/2", "2", 1234)),
		{"three events", Recv("w", 3)},
		call("LSE-4 revoke", &pb.LeaseRevokeRequest{ID: 1234}),
		{"LSE-4 REV-5 one message", Recv("w", 1)},
		call("grant 50", Grant(50, 100)),
		{"LSE-5 LSE-7 keepalive", KeepAlive(50, 777, 50)},
	}
}

func goldenHash() []Step {
	hash := func(name string, rev int64) Step {
		return call(fmt.Sprintf("MNT-3 MNT-4 %s hash %d", name, rev), &pb.HashKVRequest{Revision: rev})
	}
	return []Step{
		hash("empty", 0),
		call("a=1", Put("a", "1")), call("a=2", Put("a", "2")), call("b=1", Put("b", "1")), call("delete b", Delete("b")), call("c=1", Put("c", "1")),
		call("txn", Do(Ops(Put("d", "1"), Put("e", "2"), Delete("c"))...)), call("a=3", Put("a", "3")), call("f=9", Put("f", "9")),
		hash("before", 0), hash("before", 5), hash("before", 10),
		call("compact 5", Compact(5)), hash("after 5", 0), hash("after 5", 5), hash("after 5", 6), hash("after 5", 4),
		call("compact 7", Compact(7)), hash("after 7", 0), hash("after 7", 7), hash("after 7", 8),
		call("a=x", Put("a", "x")), call("delete a", Delete("a")), call("delete f", Delete("f")), hash("three more", 0),
		call("compact 10", Compact(10)), hash("after 10", 0), hash("after 10", 10),
		call("MNT-5 V-8 negative", &pb.HashKVRequest{Revision: -1}),
	}
}
