package etcdapi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"

	"github.com/tarn-kv/tarn/store"
)

// benchKV is the KV service of a store with keys that are checkpointed, written in
// an order that is not that of their names.
func benchKV(b *testing.B, keys, valueSize int) *kvService {
	b.Helper()
	st, err := store.Open(store.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	value := bytes.Repeat([]byte{1}, valueSize)
	rnd := rand.New(rand.NewPCG(1, 2))
	ops := make([]store.Op, 0, 100)
	for _, k := range rnd.Perm(keys) {
		ops = append(ops, store.Op{Put: &store.PutRequest{Key: fmt.Appendf(nil, "/registry/pods/default/pod-%06d", k), Value: value}})
		if len(ops) < cap(ops) {
			continue
		}
		res, err := st.Txn(context.Background(), &store.TxnRequest{Success: ops})
		if err != nil {
			b.Fatal(err)
		}
		res.Close()
		ops = ops[:0]
	}
	if err := st.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{Store: st})
	if err != nil {
		b.Fatal(err)
	}
	return &kvService{s: s}
}

// BenchmarkList makes the bytes of a full list, as gRPC gets them.
func BenchmarkList(b *testing.B) {
	for _, size := range []int{1 << 10, 4 << 10} {
		b.Run(fmt.Sprintf("10000x%d", size), func(b *testing.B) {
			k := benchKV(b, 10_000, size)
			req := &pb.RangeRequest{Key: []byte("/registry/pods/"), RangeEnd: []byte("/registry/pods0")}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				out, err := k.Range(context.Background(), req)
				if err != nil {
					b.Fatal(err)
				}
				n = mem.BufferSlice(out).Len()
				mem.BufferSlice(out).Free()
			}
			b.SetBytes(int64(n))
		})
	}
}
