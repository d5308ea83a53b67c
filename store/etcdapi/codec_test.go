package etcdapi

import (
	"bytes"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

func TestCodecTakesMessagesOfEverySize(t *testing.T) {
	for _, size := range []int{0, 1, unpooledSize, unpooledSize + 1, sharedPoolSize + 1, chunkSize - 100, chunkSize + 1} {
		want := &pb.PutRequest{Key: []byte("k"), Value: bytes.Repeat([]byte{'v'}, size), Lease: -1}
		data, err := newCodec().Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := proto.Marshal(want)
		if !bytes.Equal(data.Materialize(), plain) {
			t.Errorf("value of %d bytes: not the protobuf encoding", size)
		}
		got := new(pb.PutRequest)
		if err := newCodec().Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		data.Free()
		if !proto.Equal(got, want) {
			t.Errorf("value of %d bytes came back different", size)
		}
	}
}

func TestCodecPassesRawThrough(t *testing.T) {
	in := raw{mem.SliceBuffer("one"), mem.SliceBuffer("two")}
	out, err := newCodec().Marshal(in)
	if err != nil || string(out.Materialize()) != "onetwo" {
		t.Fatalf("Marshal(raw) = %q, %v", out.Materialize(), err)
	}
	if _, err := newCodec().Marshal("text"); err == nil {
		t.Error("Marshal takes a string")
	}
	if err := newCodec().Unmarshal(out, new(string)); err == nil {
		t.Error("Unmarshal takes a string")
	}
	if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer{0xff}}, new(pb.PutRequest)); err == nil {
		t.Error("Unmarshal takes nonsense")
	}
}

func TestAllocateFits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		n := r.IntN(2 * chunkSize)
		b, pool := allocate(n)
		if len(*b) != 0 || cap(*b) < n {
			t.Fatalf("allocate(%d): length %d, room for %d", n, len(*b), cap(*b))
		}
		if cap(*b) > 2*n && n > sharedPoolSize {
			t.Fatalf("allocate(%d) wastes a buffer of %d", n, cap(*b))
		}
		if pool != nil {
			*b = (*b)[:n]
			pool.Put(b)
		}
	}
}
