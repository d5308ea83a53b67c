package difftest

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

func TestFiles(t *testing.T) {
	mixed := []Step{
		call("grant", Grant(7, 3000)), call("a", PutLease("a", "1", 7)), call("b", Put("b", "1")), call("a again", Put("a", "2")),
		call("delete b", Delete("b")), call("txn", Do(Ops(Put("c", "1"), Put("d", ""), Delete("a"))...)), call("binary", Put("\x00\xff", "\xfe")),
		call("b back", PutLease("b", "2", 7)), call("delete d", Delete("d")),
	}
	roundTrip := func(steps ...Step) []Step {
		return append(steps, Step{"restart", Restart(true)}, Step{"DSK-10 DSK-14 DSK-16 MNT-3 round trip", RoundTrip()})
	}
	suite.Run(t, []Case{
		{Name: "empty store", Steps: roundTrip()},
		{Name: "never compacted", Steps: roundTrip(mixed...)},
		{Name: "compacted", Steps: roundTrip(append(mixed[:len(mixed):len(mixed)], call("DSK-1 compact", Compact(5)))...)},
		{Name: "compacted at a tombstone", Steps: roundTrip(append(mixed[:len(mixed):len(mixed)], call("DSK-1 compact", Compact(9)))...)},
		{Name: "all deleted and compacted", Steps: roundTrip(append(mixed[:len(mixed):len(mixed)], call("delete all", DeleteAll("\x00", "\x00")), call("DSK-1 compact", Compact(10)), call("x", Put("x", "1")), call("delete x", Delete("x")))...)},
		{Name: "many", Steps: roundTrip(
			Step{"data", Quietly(3000, func(i int) proto.Message { return Put(fmt.Sprintf("k%d", i*7%200), fmt.Sprintf("value %d", i)) })},
			call("compact", Compact(1500)),
			Step{"more", Quietly(500, func(i int) proto.Message { return Delete(fmt.Sprintf("k%d", i*3%200)) })},
		)},
	})
}

// TestImport goes the other way: from a snapshot, of etcd and of tarn, into tarn.
func TestImport(t *testing.T) {
	data := []Step{
		call("grant", Grant(7, 3000)), call("grant 8", Grant(8, 5000)), call("a", PutLease("a", "1", 7)), call("b", Put("b", "1")),
		call("a again", Put("a", "2")), call("delete b", Delete("b")), call("txn", Do(Ops(Put("c", "1"), Put("d", ""), Delete("a"))...)),
		call("binary", Put("\x00\xff", "\xfe")), call("b back", PutLease("b", "2", 7)), call("delete d", Delete("d")),
	}
	asked := []proto.Message{&pb.LeaseLeasesRequest{}, &pb.LeaseTimeToLiveRequest{ID: 7, Keys: true}, &pb.LeaseTimeToLiveRequest{ID: 8, Keys: true}, &pb.AlarmRequest{}}
	imported := func(steps ...Step) []Step {
		return append(steps, Step{"restart", Restart(true)}, Step{"DSK-10 MNT-3 import", Imported(asked...)}, Step{"DSK-17 import of a bumped one", ImportedBumped(asked...)})
	}
	with := func(more ...Step) []Step { return append(data[:len(data):len(data)], more...) }
	suite.Run(t, []Case{
		{Name: "empty store", Steps: imported()},
		{Name: "never compacted", Steps: imported(data...)},
		{Name: "compacted", Steps: imported(with(call("DSK-1 compact", Compact(5)))...)},
		{Name: "compacted at a tombstone", Steps: imported(with(call("DSK-1 compact", Compact(9)))...)},
		{Name: "many", Steps: imported(
			Step{"data", Quietly(3000, func(i int) proto.Message { return Put(fmt.Sprintf("k%d", i*7%200), fmt.Sprintf("value %d", i)) })},
			call("compact", Compact(1500)),
			Step{"more", Quietly(500, func(i int) proto.Message { return Delete(fmt.Sprintf("k%d", i*3%200)) })},
		)},
	})
}
