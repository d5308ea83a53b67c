package difftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// bulk writes n keys of the given size, s/0000 and on.
func bulk(n, size int) Step {
	value := strings.Repeat("v", size)
	return Step{fmt.Sprintf("data %d x %d bytes", n, size), Quietly(n, func(i int) proto.Message {
		return Put(fmt.Sprintf("s/%04d", i), value)
	})}
}

func stream(name string, r *pb.RangeRequest) Step { return Step{name, Stream(r)} }

func TestKVStream(t *testing.T) {
	from := func(r *pb.RangeRequest) *pb.RangeRequest {
		r.Key, r.RangeEnd = []byte("s/"), []byte("s0")
		return r
	}
	suite.Run(t, []Case{
		{Name: "chunks of small keys", Steps: []Step{
			stream("RS-11 empty store", from(&pb.RangeRequest{})),
			bulk(500, 1000),
			stream("RS-1 RS-2 RS-7 all", from(&pb.RangeRequest{})),
			stream("RS-4 RS-8 limit 1", from(&pb.RangeRequest{Limit: 1})),
			stream("RS-4 RS-8 limit 10", from(&pb.RangeRequest{Limit: 10})),
			stream("RS-4 RS-8 limit 25", from(&pb.RangeRequest{Limit: 25})),
			stream("RS-4 RS-8 limit 500", from(&pb.RangeRequest{Limit: 500})),
			stream("RS-4 RS-8 limit 501", from(&pb.RangeRequest{Limit: 501})),
			stream("RS-5 pinned", from(&pb.RangeRequest{Revision: 31})),
			stream("RS-4 RS-5 pinned and limited", from(&pb.RangeRequest{Revision: 31, Limit: 12})),
			stream("RS-8 keys only", from(&pb.RangeRequest{KeysOnly: true})),
			stream("RS-8 single", Get("s/0003")),
			stream("RS-8 single missing", Get("nope")),
			stream("RS-8 count only", from(&pb.RangeRequest{CountOnly: true})),
			stream("RS-8 count only limited", from(&pb.RangeRequest{CountOnly: true, Limit: 3})),
			stream("RS-8 serializable", from(&pb.RangeRequest{Serializable: true, Limit: 12})),
			stream("RS-11 empty range", List("x", "y")),
			stream("RS-11 end below key", List("x", "a")),
			{"RS-1 RS-4 negative limit", StreamMerged(from(&pb.RangeRequest{Limit: -3}))},
		}},
		{Name: "chunks of big keys", Steps: []Step{
			bulk(150, 20_000),
			stream("RS-7 all", from(&pb.RangeRequest{})),
		}},
		{Name: "chunks of huge keys", Steps: []Step{
			bulk(20, 700_000),
			stream("RS-7 all", from(&pb.RangeRequest{})),
		}},
		{Name: "errors", Steps: []Step{
			bulk(12, 10),
			stream("RS-10 no key", &pb.RangeRequest{}),
			stream("RS-9 descend", from(&pb.RangeRequest{SortOrder: pb.RangeRequest_DESCEND})),
			stream("RS-9 ascend by key", from(&pb.RangeRequest{SortOrder: pb.RangeRequest_ASCEND})),
			stream("RS-9 ascend by mod", from(&pb.RangeRequest{SortOrder: pb.RangeRequest_ASCEND, SortTarget: pb.RangeRequest_MOD})),
			stream("RS-9 none by mod", from(&pb.RangeRequest{SortTarget: pb.RangeRequest_MOD})),
			stream("RS-9 min mod", from(&pb.RangeRequest{MinModRevision: 1})),
			stream("RS-9 max mod", from(&pb.RangeRequest{MaxModRevision: 1})),
			stream("RS-9 min create", from(&pb.RangeRequest{MinCreateRevision: 1})),
			stream("RS-9 max create", from(&pb.RangeRequest{MaxCreateRevision: 1})),
			stream("RS-10 bad order", from(&pb.RangeRequest{SortOrder: 7})),
			stream("RS-10 bad target", from(&pb.RangeRequest{SortTarget: 7})),
			stream("RS-10 future", from(&pb.RangeRequest{Revision: 14})),
			call("compact 5", Compact(5)),
			stream("RS-10 compacted", from(&pb.RangeRequest{Revision: 4})),
			stream("RS-10 at compacted", from(&pb.RangeRequest{Revision: 5})),
			stream("RS-13 negative revision", from(&pb.RangeRequest{Revision: -1})),
		}},
		{Name: "compaction in the middle", Steps: []Step{
			bulk(1500, 10_000),
			{"RS-6 V-14 compact after the first chunk", compactWhileStreaming(from(&pb.RangeRequest{}), 1501)},
		}},
	})
}

// compactWhileStreaming reads one chunk, writes and compacts past the pinned
// revision, then reads on. How far etcd comes is chance, so only whether the
// stream was complete is compared.
func compactWhileStreaming(r *pb.RangeRequest, current int64) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		st, err := s.kv().RangeStream(ctx, r)
		if err == nil {
			_, err = st.Recv()
		}
		if err == nil {
			_, err = s.kv().Put(ctx, Put("later", "1"))
		}
		if err == nil {
			_, err = s.kv().Compact(ctx, Compact(current+1))
		}
		var last *pb.RangeStreamResponse
		for err == nil {
			var m *pb.RangeStreamResponse
			if m, err = st.Recv(); err == nil {
				last = m
			}
		}
		if errors.Is(err, io.EOF) && last != nil {
			f.add("header revision", last.RangeResponse.Header.GetRevision())
			f.add("count", last.RangeResponse.Count)
		}
		f.streamEnd(s, err)
		return f
	}
}
