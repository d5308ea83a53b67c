package etcdapi

import (
	"bytes"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
)

// updateTxn is the transaction kube-apiserver updates an object with.
func updateTxn(rev int64, value []byte) *pb.TxnRequest {
	key := []byte("/registry/leases/kube-system/kube-controller-manager")
	return &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: rev}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value}}}},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}
}

// BenchmarkTxnCoding is all that happens to an update outside the store: decode,
// check, convert, encode the answer.
func BenchmarkTxnCoding(b *testing.B) {
	req := updateTxn(5, bytes.Repeat([]byte{1}, 424))
	wire, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	s := &Server{cfg: Config{MaxRequestBytes: DefaultMaxRequestBytes}, clusterID: 1 << 63, memberID: 1 << 62, term: 2}
	c := newCodec()
	data := mem.BufferSlice{mem.SliceBuffer(wire)}
	b.ReportAllocs()
	for b.Loop() {
		in := new(pb.TxnRequest)
		if err := c.Unmarshal(data, in); err != nil {
			b.Fatal(err)
		}
		if err := checkTxn(in, DefaultMaxTxnOps); err != nil {
			b.Fatal(err)
		}
		if err := s.checkSize(in); err != nil {
			b.Fatal(err)
		}
		converted := txnRequest(in)
		res := &store.TxnResult{Revision: 6, Succeeded: true, Ops: converted.Success, Results: []store.OpResult{{Revision: 6}}}
		buf, pool := allocate(txnSize(res))
		out, err := appendTxn(nil, *buf, s.head(6), res)
		if err != nil {
			b.Fatal(err)
		}
		*buf = out
		sent, err := c.Marshal(raw{mem.NewBuffer(buf, pool)})
		if err != nil {
			b.Fatal(err)
		}
		sent.Free()
	}
}

// BenchmarkWatchEvent encodes the response for one event as each further watch
// of it does: the event itself is encoded already.
func BenchmarkWatchEvent(b *testing.B) {
	for name, size := range map[string]int{"small": 400, "large": 4000} {
		b.Run(name, func(b *testing.B) {
			event := oneEvent(b, bytes.Repeat([]byte{1}, size))
			h := watchHead{head: head{cluster: 1 << 63, member: 1 << 62, revision: 1000, term: 2}}
			events := []*store.Event{event}
			c := newCodec()
			b.ReportAllocs()
			for b.Loop() {
				sent, err := c.Marshal(h.encodeEvents(events, true))
				if err != nil {
					b.Fatal(err)
				}
				sent.Free()
			}
		})
	}
}

// oneEvent returns the event of an update with a value.
func oneEvent(tb testing.TB, value []byte) *store.Event {
	tb.Helper()
	st, err := store.Open(store.Options{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { st.Close() })
	ready := make(chan struct{}, 1)
	w := st.NewWatchStream(func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	tb.Cleanup(w.Close)
	key := []byte("/registry/pods/default/a")
	if _, err := w.Create(store.WatchRequest{KeyRange: store.KeyRange{Key: key}, PrevKV: true}); err != nil {
		tb.Fatal(err)
	}
	for range 2 {
		res, err := st.Txn(tb.Context(), &store.TxnRequest{Success: []store.Op{{Put: &store.PutRequest{Key: key, Value: value}}}})
		if err != nil {
			tb.Fatal(err)
		}
		res.Close()
	}
	var last *store.Event
	for last == nil {
		<-ready
		for {
			m, ok, err := w.Next()
			if err != nil {
				tb.Fatal(err)
			}
			if !ok {
				break
			}
			for _, e := range m.Events {
				if e.Size(true) > 2*len(value) {
					last = e
				}
			}
			w.Sent(m)
		}
	}
	return last
}
