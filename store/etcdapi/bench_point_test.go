package etcdapi

import (
	"context"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
)

// BenchmarkPointRange is all of a read of one key but gRPC itself: decode, read from the
// tree or from what is not checkpointed yet, encode.
func BenchmarkPointRange(b *testing.B) {
	const keys = 10_000
	k := benchKV(b, keys, 1<<10)
	fresh := []byte("/registry/pods/default/fresh")
	res, err := k.s.store.Txn(context.Background(), &store.TxnRequest{
		Success: []store.Op{{Put: &store.PutRequest{Key: fresh, Value: make([]byte, 1<<10)}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	res.Close()
	for _, c := range []struct {
		name string
		key  []byte
		want int64
	}{
		{"tree", fmt.Appendf(nil, "/registry/pods/default/pod-%06d", keys/2), 1},
		{"fresh", fresh, 1},
		{"missing", []byte("/registry/pods"), 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			wire, err := proto.Marshal(&pb.RangeRequest{Key: c.key, Limit: 1})
			if err != nil {
				b.Fatal(err)
			}
			data := mem.BufferSlice{mem.SliceBuffer(wire)}
			codec := newCodec()
			b.ReportAllocs()
			var answer pb.RangeResponse
			for b.Loop() {
				in := new(pb.RangeRequest)
				if err := codec.Unmarshal(data, in); err != nil {
					b.Fatal(err)
				}
				out, err := k.Range(context.Background(), in)
				if err != nil {
					b.Fatal(err)
				}
				sent, err := codec.Marshal(out)
				if err != nil {
					b.Fatal(err)
				}
				if answer.Header == nil { // once
					if err := proto.Unmarshal(sent.Materialize(), &answer); err != nil {
						b.Fatal(err)
					}
				}
				sent.Free()
			}
			if answer.Count != c.want {
				b.Fatalf("%d keys came, not %d", answer.Count, c.want)
			}
		})
	}
}
