package difftest

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// from creates a watch on one key.
func from(key string, start int64) *pb.WatchRequest {
	return Create(&pb.WatchCreateRequest{Key: []byte(key), StartRevision: start})
}

// over creates a watch on [key, end) with previous values.
func over(key, end string, start int64) *pb.WatchRequest {
	return Create(&pb.WatchCreateRequest{Key: []byte(key), RangeEnd: []byte(end), StartRevision: start, PrevKv: true})
}

func TestWatchCreate(t *testing.T) {
	withID := func(key string, id int64) *pb.WatchRequest {
		return Create(&pb.WatchCreateRequest{Key: []byte(key), WatchId: id})
	}
	suite.Run(t, []Case{
		{Name: "ranges", Steps: []Step{
			call("data", Put("a", "1")),
			{"open", Open("w")},
			{"WCH-1 WCH-5 created", Ask("w", 1, from("a", 0))},
			{"WCH-4 end below key", Ask("w", 1, over("d", "a", 0))},
			{"WCH-4 end equals key", Ask("w", 1, over("d", "d", 0))},
			{"WCH-10 next id", Ask("w", 1, from("b", 0))},
			{"WCH-19 request without content", Quiet("w", &pb.WatchRequest{})},
			call("put a", Put("a", "2")),
			{"WCH-24 event after the empty request", Recv("w", 1)},
			call("put b", Put("b", "2")),
			{"WCH-24 event of the other watch", Recv("w", 1)},
			{"open e", Open("e")},
			{"WCH-2 no key", Ask("e", 1, Create(&pb.WatchCreateRequest{}))},
			call("put zero byte", Put("\x00", "z")),
			{"WCH-2 zero byte is seen", Recv("e", 1)},
			call("put ab", Put("ab", "z")),
			{"WCH-2 others are not", Quiet("e")},
			{"open f", Open("f")},
			{"WCH-3 no key and zero end", Ask("f", 1, Create(&pb.WatchCreateRequest{RangeEnd: []byte{0}}))},
			call("put x", Put("x", "1")),
			{"WCH-3 sees all", Recv("f", 1)},
			{"open g", Open("g")},
			{"WCH-3 from m on", Ask("g", 1, over("m", "\x00", 0))},
			call("put l", Put("l", "1")), call("put m", Put("m", "1")), call("put zz", Put("zz", "1")),
			{"WCH-3 m and zz", Recv("g", 2)},
			{"open h", Open("h")},
			{"WCH-3 half open", Ask("h", 1, over("m", "n", 0))},
			call("put n", Put("n", "1")), call("put m again", Put("m", "2")),
			{"WCH-3 only m", Recv("h", 1)},
			{"the others on f", Recv("f", 5)},
			{"the others on g", Recv("g", 2)},
		}},
		{Name: "start", Steps: []Step{
			call("a=1", Put("a", "1")), call("a=2", Put("a", "2")), call("a=3", Put("a", "3")), call("a=4", Put("a", "4")),
			{"open p", Open("p")},
			{"WCH-6 WCH-26 from 3 on", Ask("p", 2, from("a", 3))},
			{"WCH-6 from current on", Ask("p", 2, from("a", 5))},
			{"open q", Open("q")},
			{"WCH-7 from the next on", Ask("q", 1, from("a", 6))},
			{"WCH-7 from a later one on", Ask("q", 1, from("a", 7))},
			call("a=5", Put("a", "5")),
			{"WCH-7 first of them sees 6", Recv("q", 1)},
			{"two on p", RecvByID("p", 2)},
			call("a=6", Put("a", "6")),
			{"WCH-7 both see 7", RecvByID("q", 2)},
			{"two more on p", RecvByID("p", 2)},
			call("compact 4", Compact(4)),
			{"open r", Open("r")},
			{"WCH-8 TOP-6 HDR-7 too old", Ask("r", 2, from("a", 3))},
			{"WCH-8 very old", Ask("r", 2, from("a", 1))},
			{"WCH-8 too old with nothing to see", Ask("r", 2, from("nope", 2))},
			{"WCH-6 at the compact revision", Ask("r", 2, from("a", 4))},
			{"WCH-9 negative", Ask("r", 1, from("a", -1))},
			{"WCH-9 negative with an end below", Ask("r", 1, over("b", "a", -1))},
			{"WCH-31 cancel -1", Quiet("r", Cancel(-1))},
			{"WCH-32 acknowledged cancel", Ask("r", 1, Cancel(0))},
			{"WCH-31 second cancel", Quiet("r", Cancel(0))},
			{"WCH-12 WCH-32 id of a compacted watch is in use", Ask("r", 1, withID("a", 1))},
			{"WCH-32 cancel it", Ask("r", 1, Cancel(1))},
			{"WCH-13 then it is free", Ask("r", 1, withID("a", 1))},
		}},
		{Name: "ids", Steps: []Step{
			{"open", Open("w")},
			{"WCH-10 first", Ask("w", 1, from("a", 0))},
			{"WCH-11 chosen 1", Ask("w", 1, withID("b", 1))},
			{"WCH-10 skips 1", Ask("w", 1, from("c", 0))},
			{"WCH-12 duplicate", Ask("w", 1, withID("d", 1))},
			{"WCH-12 duplicate of an automatic id", Ask("w", 1, withID("d", 2))},
			call("put b", Put("b", "1")),
			{"WCH-12 the first one is unharmed", Recv("w", 1)},
			{"WCH-11 large", Ask("w", 1, withID("e", 1<<40))},
			{"WCH-11 V-6 negative", Ask("w", 1, withID("f", -7))},
			{"WCH-10 counter is not moved", Ask("w", 1, from("g", 0))},
			{"WCH-30 cancel", Ask("w", 1, Cancel(1))},
			call("put b again", Put("b", "2")),
			{"WCH-30 no event after it", Quiet("w")},
			{"WCH-31 cancel again", Quiet("w", Cancel(1))},
			{"WCH-31 cancel unknown", Quiet("w", Cancel(99))},
			{"WCH-13 explicit again", Ask("w", 1, withID("b", 1))},
			{"WCH-13 automatic goes on", Ask("w", 1, from("h", 0))},
			{"WCH-4 duplicate with an empty range", Ask("w", 1, Create(&pb.WatchCreateRequest{Key: []byte("d"), RangeEnd: []byte("a"), WatchId: 1}))},
			{"WCH-10 separate stream", Open("v")},
			{"WCH-10 starts at 0", Ask("v", 1, from("a", 0))},
		}},
		{Name: "id minus one", Steps: []Step{
			{"open", Open("w")},
			{"WCH-11 V-6 minus one", Ask("w", 1, withID("f", -1))},
		}},
		{Name: "filters", Steps: filterWatches()},
		{Name: "end", Steps: []Step{
			{"open", Open("w")},
			{"watch", Ask("w", 1, from("a", 0))},
			{"WCH-34 half close", CloseSend("w")},
			call("put", Put("a", "1")),
			{"WCH-34 event after it", Recv("w", 1)},
			{"WCH-35 hang up", HangUp("w")},
		}},
	})
}

func filterWatches() []Step {
	kinds := []struct {
		name    string
		filters []pb.WatchCreateRequest_FilterType
	}{
		{"no put", []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}},
		{"no delete", []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}},
		{"neither", []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT, pb.WatchCreateRequest_NODELETE}},
		{"unknown", []pb.WatchCreateRequest_FilterType{7}},
	}
	var steps []Step
	for _, k := range kinds {
		steps = append(steps, Step{"open " + k.name, Open(k.name)},
			Step{"WCH-14 create " + k.name, Ask(k.name, 1, Create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("z"), Filters: k.filters, PrevKv: true}))})
	}
	steps = append(steps,
		call("put a", Put("a", "1")), call("txn", Do(Ops(Put("b", "1"), Delete("a"))...)), call("delete b", Delete("b")))
	for i, n := range []int{2, 2, 0, 3} {
		steps = append(steps, Step{"WCH-14 events " + kinds[i].name, Recv(kinds[i].name, n)},
			Step{fmt.Sprintf("WCH-14 no more of %s", kinds[i].name), Quiet(kinds[i].name)})
	}
	return append(steps, Step{"open old", Open("old")},
		Step{"WCH-14 catch-up without puts", Ask("old", 2, Create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("z"), StartRevision: 2, Filters: kinds[0].filters}))})
}
