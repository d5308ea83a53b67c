package etcdapi

import (
	"context"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
)

// canonical checks that a response encoded by hand is byte for byte what protobuf
// makes of the same message, frees it as gRPC does, and returns the message.
func canonical[M proto.Message](t *testing.T, out raw, into M) M {
	t.Helper()
	b := mem.BufferSlice(out).Materialize()
	mem.BufferSlice(out).Free()
	if err := proto.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
	if len(into.ProtoReflect().GetUnknown()) > 0 {
		t.Error("it has unknown fields")
	}
	wantEncoded(t, b, into)
	return into
}

func TestEncodingIsCanonical(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	k.fill(600, 1000)
	k.put("a", strings.Repeat("x", 300))
	k.put("b/"+strings.Repeat("k", 300), "x")
	svc := &kvService{s: k.s}
	must := func(out raw, err error) raw {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	for name, change := range map[string]func(*pb.RangeRequest){
		"large":      func(*pb.RangeRequest) {},
		"small":      func(r *pb.RangeRequest) { r.Limit = 3 },
		"keys only":  func(r *pb.RangeRequest) { r.KeysOnly = true },
		"long key":   func(r *pb.RangeRequest) { r.KeysOnly, r.Key, r.RangeEnd = true, []byte("b"), []byte("c") },
		"count only": func(r *pb.RangeRequest) { r.CountOnly = true },
		"sorted":     func(r *pb.RangeRequest) { r.SortOrder = pb.RangeRequest_DESCEND },
		"nothing":    func(r *pb.RangeRequest) { r.RangeEnd = nil },
	} {
		t.Run("range/"+name, func(t *testing.T) {
			req := like(&underP, change)
			got := canonical(t, must(svc.Range(k.ctx, req)), new(pb.RangeResponse))
			if !proto.Equal(got, k.get(req)) {
				t.Error("not what a client gets")
			}
		})
	}
	t.Run("stream", func(t *testing.T) {
		sent := &sentMessages{ctx: k.ctx}
		if err := svc.RangeStream(&underP, sent); err != nil {
			t.Fatal(err)
		}
		for _, m := range sent.messages {
			canonical(t, m, new(pb.RangeStreamResponse))
		}
		if len(sent.messages) < 5 {
			t.Errorf("only %d chunks", len(sent.messages))
		}
	})
	t.Run("put", func(t *testing.T) {
		got := canonical(t, must(svc.Put(k.ctx, &pb.PutRequest{Key: []byte("a"), PrevKv: true})), new(pb.PutResponse))
		if len(got.GetPrevKv().GetValue()) != 300 {
			t.Errorf("previous value of %d bytes", len(got.GetPrevKv().GetValue()))
		}
	})
	t.Run("txn", func(t *testing.T) {
		del := delOp("a", "")
		del.GetRequestDeleteRange().PrevKv = true
		req := &pb.TxnRequest{Success: []*pb.RequestOp{
			getOp("a"), rangeOp("p/", "p0"), putOp("b"), txnOp([]*pb.RequestOp{del, txnOp(nil, nil)}, nil)}}
		canonical(t, must(svc.Txn(k.ctx, req)), new(pb.TxnResponse))
		req = &pb.TxnRequest{Compare: []*pb.Compare{{Key: []byte("a"), Result: pb.Compare_GREATER}}}
		canonical(t, must(svc.Txn(k.ctx, req)), new(pb.TxnResponse))
	})
	t.Run("delete", func(t *testing.T) {
		req := &pb.DeleteRangeRequest{Key: []byte("p/"), RangeEnd: []byte("p0"), PrevKv: true}
		got := canonical(t, must(svc.DeleteRange(k.ctx, req)), new(pb.DeleteRangeResponse))
		if got.Deleted != 600 || len(got.PrevKvs) != 600 {
			t.Errorf("%d deleted, %d shown", got.Deleted, len(got.PrevKvs))
		}
	})
	t.Run("compact", func(t *testing.T) {
		canonical(t, must(svc.Compact(k.ctx, &pb.CompactionRequest{Revision: 2})), new(pb.CompactionResponse))
	})
}

// sentMessages is a ServerStream that keeps what is sent.
type sentMessages struct {
	grpc.ServerStream
	ctx      context.Context
	messages []raw
}

func (s *sentMessages) Context() context.Context { return s.ctx }

func (s *sentMessages) SendMsg(m any) error {
	s.messages = append(s.messages, m.(raw))
	return nil
}

func TestWatchEncodingIsCanonical(t *testing.T) {
	h := watchHead{head: head{cluster: 1, member: 2, revision: 3, term: 4}, id: 5, fragment: true}
	small, large := oneEvent(t, []byte("v")), oneEvent(t, make([]byte, 2000))
	for name, events := range map[string][]*store.Event{
		"one small": {small},
		"one large": {large},
		"mixed":     {small, large, small, small, large, large, small},
	} {
		for _, prev := range []bool{false, true} {
			got := canonical(t, h.encodeEvents(events, prev), new(pb.WatchResponse))
			if len(got.Events) != len(events) || got.Events[0].PrevKv != nil != prev {
				t.Errorf("%s, previous %v: %v", name, prev, got)
			}
		}
	}
}
