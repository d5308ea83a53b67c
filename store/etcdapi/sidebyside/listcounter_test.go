package main

import (
	"encoding/binary"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// grpcMessage puts gRPC's prefix before a message.
func grpcMessage(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

func response(keys int, valueSize int, count int64, more bool) *pb.RangeResponse {
	r := &pb.RangeResponse{Header: &pb.ResponseHeader{ClusterId: 1 << 63, Revision: 300}, Count: count, More: more}
	for i := range keys {
		r.Kvs = append(r.Kvs, &mvccpb.KeyValue{Key: []byte(keyName("/p/", i)), ModRevision: 1 << 40, Value: newValue(valueSize)})
	}
	return r
}

// Bytes arrive cut at any place.
func TestListCounter(t *testing.T) {
	var stream []byte
	for i := range 3 {
		stream = append(stream, grpcMessage(t, &pb.RangeStreamResponse{RangeResponse: response(5, 200, int64(i/2*15), false)})...)
	}
	for name, c := range map[string]struct {
		bytes  []byte
		stream bool
		want   listed
	}{
		"one message": {grpcMessage(t, response(7, 200, 7, false)), false, listed{keys: 7, count: 7}},
		"more":        {grpcMessage(t, response(3, 0, 700, true)), false, listed{keys: 3, count: 700, more: true}},
		"count only":  {grpcMessage(t, response(0, 0, 10_000, false)), false, listed{count: 10_000}},
		"empty":       {grpcMessage(t, &pb.RangeResponse{}), false, listed{}},
		"stream":      {stream, true, listed{keys: 15, count: 15}},
		"no answer":   {nil, true, listed{}},
	} {
		t.Run(name, func(t *testing.T) {
			for piece := 1; piece <= len(c.bytes)+1; piece++ {
				counter := listCounter{stream: c.stream}
				for rest := c.bytes; len(rest) > 0; {
					n := min(piece, len(rest))
					if _, err := counter.Write(rest[:n]); err != nil {
						t.Fatalf("pieces of %d: %v", piece, err)
					}
					rest = rest[n:]
				}
				got := counter.listed
				got.bytes = 0
				if err := counter.end(); err != nil || got != c.want {
					t.Fatalf("pieces of %d: got %+v, %v, want %+v", piece, got, err, c.want)
				}
			}
		})
	}
}

func TestListCounterRefuses(t *testing.T) {
	good := grpcMessage(t, response(7, 200, 7, false))
	count := func(b []byte) error {
		var c listCounter
		if _, err := c.Write(b); err != nil {
			return err
		}
		return c.end()
	}
	if err := count(good); err != nil {
		t.Fatal(err)
	}
	compressed := append([]byte{1}, good[1:]...)
	long := append([]byte(nil), good...)
	binary.BigEndian.PutUint32(long[1:], uint32(len(good)-5-100)) // the message ends inside of a field
	for name, b := range map[string][]byte{
		"cut": good[:len(good)-1], "cut in the prefix": good[:3], "compressed": compressed, "too long a field": long,
		"no number": append([]byte{0, 0, 0, 0, 12}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...),
	} {
		t.Run(name, func(t *testing.T) {
			if err := count(b); err == nil {
				t.Error("it is taken for a whole answer")
			}
		})
	}
}

func FuzzListCounter(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02\x20\x07"), false)
	f.Add([]byte("\x00\x00\x00\x00\x04\x0a\x02\x20\x07"), true)
	f.Fuzz(func(t *testing.T, b []byte, stream bool) {
		whole, pieces := listCounter{stream: stream}, listCounter{stream: stream}
		_, err := whole.Write(b)
		for i := 0; i < len(b) && err == nil; i++ {
			_, err = pieces.Write(b[i : i+1])
		}
		if err == nil && whole.listed != pieces.listed {
			t.Errorf("%+v in one piece, %+v byte by byte", whole.listed, pieces.listed)
		}
	})
}
