package etcdapi

import (
	"bytes"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// wantEncoded checks that bytes are what protobuf makes of a message: fields in
// order, zero values left out.
func wantEncoded(t *testing.T, got []byte, want proto.Message) {
	t.Helper()
	plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, plain) {
		decoded := want.ProtoReflect().New().Interface()
		err := proto.Unmarshal(got, decoded)
		t.Errorf("encoding differs:\n got %v (%v) % x\nwant %v % x", decoded, err, got, want, plain)
	}
}

func TestHeadEncoding(t *testing.T) {
	for _, h := range []head{
		{},
		{revision: 1},
		{cluster: 1<<64 - 1, member: 1 << 63, revision: 1<<63 - 1, term: 1<<64 - 1},
	} {
		b := h.append(nil)
		if len(b) > headRoom {
			t.Errorf("a header takes %d bytes, more than %d", len(b), headRoom)
		}
		wantEncoded(t, b, &pb.PutResponse{Header: &pb.ResponseHeader{
			ClusterId: h.cluster, MemberId: h.member, Revision: h.revision, RaftTerm: h.term,
		}})
	}
}

func TestEmbeddedMessageLengths(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 300, 16383, 16384, 1 << 21} {
		content := bytes.Repeat([]byte{7}, n)
		b, start := beginMessage([]byte("before"), txnResponses)
		b = endMessage(append(b, content...), start)
		want := append(appendPrefix([]byte("before"), txnResponses, n), content...)
		if !bytes.Equal(b, want) {
			t.Errorf("content of %d bytes is framed wrongly", n)
		}
	}
}

func TestRangeEndEncoding(t *testing.T) {
	wantEncoded(t, appendRangeEnd(nil, true, 300), &pb.RangeResponse{More: true, Count: 300})
	wantEncoded(t, appendRangeEnd(nil, false, 0), &pb.RangeResponse{})
}

func TestWatchHeadEncoding(t *testing.T) {
	h := head{cluster: 9, member: 8, revision: 7, term: 2}
	pbHead := &pb.ResponseHeader{ClusterId: 9, MemberId: 8, Revision: 7, RaftTerm: 2}
	for _, tt := range []struct {
		name string
		got  watchHead
		want *pb.WatchResponse
	}{
		{"WCH-1", watchHead{head: h, created: true}, &pb.WatchResponse{Header: pbHead, Created: true}},
		{"TOP-2", watchHead{head: h, id: -1}, &pb.WatchResponse{Header: pbHead, WatchId: -1}},
		{"WCH-4", watchHead{head: h, id: -1, created: true, canceled: true, reason: reasonEmptyRange},
			&pb.WatchResponse{Header: pbHead, WatchId: -1, Created: true, Canceled: true, CancelReason: "mvcc: watcher range is empty"}},
		{"WCH-27", watchHead{head: h, id: 3, fragment: true}, &pb.WatchResponse{Header: pbHead, WatchId: 3, Fragment: true}},
		{"WCH-33", watchHead{head: head{cluster: 9, member: 8, term: 2}, id: 5, canceled: true, compact: 4},
			&pb.WatchResponse{Header: &pb.ResponseHeader{ClusterId: 9, MemberId: 8, RaftTerm: 2}, WatchId: 5, Canceled: true, CompactRevision: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantEncoded(t, mem.BufferSlice(tt.got.encode()).Materialize(), tt.want)
		})
	}
}

func TestFragmentSizes(t *testing.T) {
	t.Run("WCH-27", func(t *testing.T) {
		split := func(sizes ...int) (parts []int) {
			for len(sizes) > 0 {
				n := fragment(sizes, func(n int) int { return n }, 10, 100)
				parts = append(parts, n)
				sizes = sizes[n:]
			}
			return parts
		}
		for _, tt := range []struct{ sizes, want []int }{
			{[]int{20, 20, 20}, []int{3}},
			{[]int{40, 45}, []int{2}},       // 10 + 42 + 47 is below the limit
			{[]int{40, 46}, []int{1, 1}},    // the limit itself is too much
			{[]int{500, 1, 1}, []int{1, 2}}, // one event is never split
			{[]int{1, 500, 1, 500}, []int{1, 1, 1, 1}},
			{[]int{43, 43, 43, 43, 2}, []int{1, 1, 1, 2}},
		} {
			if got := split(tt.sizes...); !slices.Equal(got, tt.want) {
				t.Errorf("%v is split into %v, want %v", tt.sizes, got, tt.want)
			}
		}
	})
}

func TestChunkGrowth(t *testing.T) {
	t.Run("RS-7", func(t *testing.T) {
		chunks := func(total, valueSize int) (keys []int) {
			for n := firstChunkKeys; total > 0; {
				n = min(n, total)
				keys = append(keys, n)
				total -= n
				n = nextChunkKeys(n, n*valueSize)
			}
			return keys
		}
		for _, tt := range []struct {
			total, size int
			want        []int
		}{
			{500, 1 << 10, []int{10, 20, 40, 80, 160, 190}},
			{130, 20 << 10, []int{10, 20, 40, 40, 20}},
			{20, 4 << 20, []int{10, 5, 2, 1, 1, 1}},
		} {
			if got := chunks(tt.total, tt.size); !slices.Equal(got, tt.want) {
				t.Errorf("%d keys of %d bytes: chunks %v, want %v", tt.total, tt.size, got, tt.want)
			}
		}
	})
}
