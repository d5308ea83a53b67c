package etcdapi

import (
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// merge puts chunks together as protobuf merges them.
func merge(chunks []*pb.RangeResponse) *pb.RangeResponse {
	out := new(pb.RangeResponse)
	for _, c := range chunks {
		proto.Merge(out, c)
	}
	return out
}

func TestRangeStreamIsRangeInChunks(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	k.fill(500, 1024)
	rev := k.put("other", "x")
	for name, change := range map[string]func(*pb.RangeRequest){
		"RS-1":            func(*pb.RangeRequest) {},
		"RS-8/limit":      func(r *pb.RangeRequest) { r.Limit = 35 },
		"RS-8/limit = n":  func(r *pb.RangeRequest) { r.Limit = 500 },
		"RS-8/keys only":  func(r *pb.RangeRequest) { r.KeysOnly = true },
		"RS-8/single key": func(r *pb.RangeRequest) { r.Key, r.RangeEnd = []byte("p/00007"), nil },
		"RS-8/count only": func(r *pb.RangeRequest) { r.CountOnly, r.Limit = true, 3 },
		"RS-5/pinned":     func(r *pb.RangeRequest) { r.Revision = rev - 2 },
		"RS-11":           func(r *pb.RangeRequest) { r.Key, r.RangeEnd = []byte("x"), []byte("y") },
		"RS-13":           func(r *pb.RangeRequest) { r.Revision = -5 },
	} {
		t.Run(name, func(t *testing.T) {
			req := like(&underP, change)
			chunks, err := k.stream(req)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := merge(chunks), k.get(req); !proto.Equal(got, want) {
				t.Errorf("merged: %d keys, count %d, more %v, header %v\nrange:  %d keys, count %d, more %v, header %v",
					len(got.Kvs), got.Count, got.More, got.Header, len(want.Kvs), want.Count, want.More, want.Header)
			}
			for i, c := range chunks[:len(chunks)-1] {
				if c.Header != nil || c.More || c.Count != 0 || len(c.Kvs) == 0 { // RS-2, RS-3
					t.Errorf("chunk %d of %d: header %v, more %v, count %d, %d keys", i, len(chunks), c.Header, c.More, c.Count, len(c.Kvs))
				}
			}
		})
	}
	t.Run("RS-7", func(t *testing.T) {
		chunks, err := k.stream(&underP)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, c := range chunks {
			sizes = append(sizes, len(c.Kvs))
		}
		if want := []int{10, 20, 40, 80, 160, 190}; !slices.Equal(sizes, want) {
			t.Errorf("chunks of %v keys, want %v", sizes, want)
		}
	})
	k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
}

// A stream whose keys end at the border of a chunk, or beside it, loses none and has no empty chunk.
func TestRangeStreamAroundChunkBorders(t *testing.T) {
	k := newKVTest(t, Config{})
	filled := 0
	for _, n := range []int{1, 9, 10, 11, 29, 30, 31, 69, 70, 71} {
		for ; filled < n; filled++ {
			k.put(fmt.Sprintf("p/%05d", filled), "x")
		}
		for _, limit := range []int64{0, int64(n) - 1, int64(n), 10, 11, 30, 31} {
			t.Run(fmt.Sprintf("RS-1/%d keys, limit %d", n, limit), func(t *testing.T) {
				req := like(&underP, func(r *pb.RangeRequest) { r.Limit = limit })
				chunks, err := k.stream(req)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := merge(chunks), k.get(req); !proto.Equal(got, want) {
					t.Errorf("merged: %d keys, count %d, more %v; range: %d keys, count %d, more %v",
						len(got.Kvs), got.Count, got.More, len(want.Kvs), want.Count, want.More)
				}
				for i, c := range chunks {
					if len(c.Kvs) == 0 { // RS-3
						t.Errorf("chunk %d of %d is empty", i, len(chunks))
					}
				}
			})
		}
	}
}

// A target without an order sorts a stream as it sorts a range, over all chunks.
func TestRangeStreamSorted(t *testing.T) {
	k := newKVTest(t, Config{})
	k.fill(100, 10)
	for _, n := range []int{50, 3, 98} {
		k.put(fmt.Sprintf("p/%05d", n), fmt.Sprint("value ", n))
	}
	for _, target := range []pb.RangeRequest_SortTarget{pb.RangeRequest_MOD, pb.RangeRequest_VERSION, pb.RangeRequest_VALUE} {
		for _, limit := range []int64{0, 35} {
			t.Run(fmt.Sprintf("RS-9/%v/limit %d", target, limit), func(t *testing.T) {
				req := like(&underP, func(r *pb.RangeRequest) { r.SortTarget, r.Limit = target, limit })
				chunks, err := k.stream(req)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := merge(chunks), k.get(req); !proto.Equal(got, want) || len(chunks) < 3 || len(chunks[0].Kvs) != firstChunkKeys {
					t.Errorf("%d chunks, the first of %d keys, merged:\n%v\nrange:\n%v", len(chunks), len(chunks[0].Kvs), got, want)
				}
			})
		}
	}
}

func TestRangeStreamErrors(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("a", "1")
	k.put("a", "2")
	k.compact(3)
	key := []byte("a")
	for _, tt := range []struct {
		name string
		req  *pb.RangeRequest
		code codes.Code
		text string
	}{
		{"RS-10/key", &pb.RangeRequest{}, codes.InvalidArgument, "etcdserver: key is not provided"},
		{"RS-10/future", &pb.RangeRequest{Key: key, Revision: 4}, codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision"},
		{"RS-10/compacted", &pb.RangeRequest{Key: key, Revision: 2}, codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"},
		{"RS-9/order", &pb.RangeRequest{Key: key, SortOrder: pb.RangeRequest_DESCEND}, codes.Unimplemented, "RangeStream does not support custom sort orders"},
		{"RS-9/bounds", &pb.RangeRequest{Key: key, MinModRevision: 1}, codes.Unimplemented, "RangeStream does not support revision filters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chunks, err := k.stream(tt.req)
			wantStatus(t, err, tt.code, tt.text)
			if len(chunks) != 0 {
				t.Errorf("%d chunks before the error", len(chunks))
			}
		})
	}
}

func TestRangeStreamOutlivesCompaction(t *testing.T) {
	k := newKVTest(t, Config{})
	want := k.fill(3000, 4000) // more than fits in what is on the way to a client
	rev := k.get(&pb.RangeRequest{Key: []byte("p/")}).Header.Revision
	t.Run("V-14", func(t *testing.T) {
		s, err := k.kv.RangeStream(k.ctx, &underP)
		if err != nil {
			t.Fatal(err)
		}
		first, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		k.del("p/", "p0")
		k.compact(k.put("other", "x"))
		rest, err := drainStream(s)
		if err != nil {
			t.Fatal(err)
		}
		got := merge(append([]*pb.RangeResponse{first.RangeResponse}, rest...))
		if len(got.Kvs) != len(want) || got.Count != int64(len(want)) || got.Header.Revision != rev {
			t.Fatalf("%d keys, count %d, header revision %d", len(got.Kvs), got.Count, got.Header.Revision)
		}
		for i, kv := range got.Kvs {
			if key := fmt.Sprintf("p/%05d", i); string(kv.Key) != key || string(kv.Value) != string(want[key]) {
				t.Fatalf("key %d is %q, or its value is wrong", i, kv.Key)
			}
		}
	})
}
