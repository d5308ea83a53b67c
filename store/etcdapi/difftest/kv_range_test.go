package difftest

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// rangeData writes a to e with different versions, values, sizes and a lease.
// Current revision afterwards: 10.
func rangeData(more ...Step) []Step {
	return append([]Step{
		call("data grant", Grant(7, 3600)),
		call("data a", Put("a", "5")),
		call("data b", Put("b", "4")),
		call("data c", PutLease("c", "3", 7)),
		call("data d", Put("d", "2")),
		call("data e", Put("e", "1")),
		call("data a again", Put("a", "9")),
		call("data a third", Put("a", "0")),
		call("data d again", Put("d", "6")),
		call("data x", Put("x", "")),
	}, more...)
}

func TestKVRange(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "empty store", Steps: []Step{
			call("HDR-9 RNG-17 all", All(0)),
			call("RNG-7 revision 1", All(1)),
			call("RNG-7 revision 2", All(2)),
			call("RNG-17 one key", Get("nope")),
			call("RNG-1 no key", &pb.RangeRequest{}),
		}},
		{Name: "selection", Steps: rangeData(
			call("RNG-1 no key but an end", &pb.RangeRequest{RangeEnd: []byte("z")}),
			call("RNG-2 HDR-1 single", Get("a")),
			call("RNG-2 single in the past", &pb.RangeRequest{Key: []byte("a"), Revision: 4}),
			call("RNG-3 half open", List("a", "d")),
			call("RNG-3 end between keys", List("a", "ca")),
			call("RNG-4 from c on", List("c", "\x00")),
			call("RNG-4 all", All(0)),
			call("RNG-5 end below key", List("d", "a")),
			call("RNG-5 end equals key", List("d", "d")),
			call("RNG-17 missing", Get("nope")),
			call("RNG-2 empty value", Get("x")),
			call("RNG-16 serializable", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Serializable: true}),
			call("RNG-13 count only", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), CountOnly: true, Limit: 1, MinModRevision: 9}),
			call("RNG-13 count only in the past", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), CountOnly: true, Revision: 4}),
			call("RNG-14 keys only without leases", &pb.RangeRequest{Key: []byte("d"), RangeEnd: []byte("z"), KeysOnly: true}),
			call("RNG-14 V-2 keys only of a leased key", &pb.RangeRequest{Key: []byte("c"), KeysOnly: true}),
			call("RNG-15 keys only sorted by value", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), KeysOnly: true, SortTarget: pb.RangeRequest_VALUE, SortOrder: pb.RangeRequest_DESCEND}),
			call("RNG-13 keys only and count only", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), KeysOnly: true, CountOnly: true}),
		)},
		{Name: "limit", Steps: rangeData(limitSteps()...)},
		{Name: "revision", Steps: rangeData(
			call("RNG-7 future", All(11)),
			call("RNG-7 negative is current", All(-5)),
			call("RNG-8 TOP-8 pinned", All(6)),
			call("RNG-7 first", All(2)),
			call("compact 6", Compact(6)),
			call("RNG-7 below compacted", All(5)),
			call("RNG-7 at compacted", All(6)),
			call("RNG-7 above compacted", All(7)),
			call("RNG-7 future after compact", All(11)),
			call("RNG-7 single key below compacted", &pb.RangeRequest{Key: []byte("a"), Revision: 3}),
			call("RNG-7 count below compacted", &pb.RangeRequest{Key: []byte("a"), Revision: 3, CountOnly: true}),
			call("RNG-7 empty range below compacted", &pb.RangeRequest{Key: []byte("d"), RangeEnd: []byte("a"), Revision: 3}),
		)},
		{Name: "sort", Steps: rangeData(sortSteps()...)},
		{Name: "filters", Steps: rangeData(filterSteps()...)},
	})
}

func limitSteps() []Step {
	var steps []Step
	for _, limit := range []int64{-1, 0, 1, 2, 5, 6, 7} {
		steps = append(steps, call(fmt.Sprintf("RNG-6 TOP-7 limit %d", limit),
			&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Limit: limit}))
	}
	return append(steps,
		call("RNG-6 limit in the past", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Limit: 2, Revision: 5}),
		call("RNG-6 limit single", &pb.RangeRequest{Key: []byte("a"), Limit: 1}),
		call("RNG-6 limit keys only", &pb.RangeRequest{Key: []byte("d"), RangeEnd: []byte("z"), Limit: 2, KeysOnly: true}),
		call("RNG-6 limit with nothing there", &pb.RangeRequest{Key: []byte("m"), RangeEnd: []byte("n"), Limit: 2}),
	)
}

func sortSteps() []Step {
	var steps []Step
	add := func(name string, r *pb.RangeRequest) {
		r.Key, r.RangeEnd = []byte("a"), []byte("z")
		steps = append(steps, call(name, r))
	}
	for target := range int32(5) {
		for order := range int32(3) {
			r := &pb.RangeRequest{SortTarget: pb.RangeRequest_SortTarget(target), SortOrder: pb.RangeRequest_SortOrder(order)}
			name := fmt.Sprintf("%v %v", r.SortTarget, r.SortOrder)
			if r.SortTarget == pb.RangeRequest_VERSION {
				// Versions of most keys are equal and the sort is not stable.
				name += " of distinct"
				r.MinModRevision = 8
			}
			add("RNG-9 "+name, r)
			limited := proto.Clone(r).(*pb.RangeRequest)
			limited.Limit = 2
			row := "RNG-10 "
			if order == 0 && target != 0 {
				row = "RNG-10 V-3 "
			}
			add(row+name+" limit 2", limited)
		}
	}
	add("RNG-11 bad order", &pb.RangeRequest{SortOrder: 9})
	add("RNG-11 bad target", &pb.RangeRequest{SortTarget: 9})
	add("RNG-11 negative order", &pb.RangeRequest{SortOrder: -1})
	add("RNG-18 bad order before future", &pb.RangeRequest{SortOrder: 9, Revision: 99})
	steps = append(steps, call("RNG-18 no key before bad order", &pb.RangeRequest{SortOrder: 9}))
	return steps
}

func filterSteps() []Step {
	var steps []Step
	add := func(name string, r *pb.RangeRequest) {
		r.Key, r.RangeEnd = []byte("a"), []byte("z")
		steps = append(steps, call("RNG-12 "+name, r))
	}
	add("min mod", &pb.RangeRequest{MinModRevision: 6})
	add("max mod", &pb.RangeRequest{MaxModRevision: 6})
	add("min create", &pb.RangeRequest{MinCreateRevision: 4})
	add("max create", &pb.RangeRequest{MaxCreateRevision: 4})
	add("all bounds", &pb.RangeRequest{MinModRevision: 3, MaxModRevision: 9, MinCreateRevision: 2, MaxCreateRevision: 5})
	add("limit cuts filtered", &pb.RangeRequest{MinModRevision: 6, Limit: 2})
	add("limit equals filtered", &pb.RangeRequest{MinModRevision: 8, Limit: 3})
	add("negative max mod", &pb.RangeRequest{MaxModRevision: -1})
	add("negative max create", &pb.RangeRequest{MaxCreateRevision: -1})
	add("negative min mod", &pb.RangeRequest{MinModRevision: -1})
	add("sorted filtered limited", &pb.RangeRequest{MaxModRevision: 9, Limit: 2, SortTarget: pb.RangeRequest_MOD, SortOrder: pb.RangeRequest_DESCEND})
	add("in the past", &pb.RangeRequest{MinModRevision: 4, Revision: 6})
	add("nothing matches", &pb.RangeRequest{MinModRevision: 100})
	add("election: oldest below", &pb.RangeRequest{MaxCreateRevision: 5, SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_DESCEND, Limit: 1})
	add("keys only filtered", &pb.RangeRequest{MinModRevision: 9, KeysOnly: true})
	return steps
}
