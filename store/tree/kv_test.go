package tree

import (
	"bytes"
	"encoding/hex"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func TestKVGoldenBytes(t *testing.T) {
	got := AppendKV(nil, []byte("d"), 7, 7, 1, []byte("1"), 0)
	want, _ := hex.DecodeString("0a0164100718072001" + "2a0131")
	if !bytes.Equal(got, want) {
		t.Errorf("put d=1 at 7: %x, want %x", got, want)
	}
	if got := AppendKV(nil, []byte("d"), 0, 0, 0, nil, 0); !bytes.Equal(got, []byte("\x0a\x01d")) {
		t.Errorf("tombstone of d: %x", got)
	}
	if k := (Revision{7, 0}).AppendKey(nil, false); hex.EncodeToString(k) != "00000000000000075f0000000000000000" {
		t.Errorf("revision key: %x", k)
	}
	if k := (Revision{7, 1}).AppendKey(nil, true); hex.EncodeToString(k) != "00000000000000075f000000000000000174" {
		t.Errorf("tombstone key: %x", k)
	}
}

func TestKVLikeEtcd(t *testing.T) {
	rnd := seeded(t)
	number := func() int64 {
		if rnd.IntN(4) == 0 {
			return 0
		}
		n := rnd.Int64() >> rnd.IntN(63)
		if rnd.IntN(10) == 0 {
			n = -n
		}
		return n
	}
	text := func() []byte {
		b := make([]byte, rnd.IntN(2)*rnd.IntN(300))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	for range 2000 {
		m := &mvccpb.KeyValue{Key: text(), CreateRevision: number(), ModRevision: number(), Version: number(), Value: text(), Lease: number()}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := AppendKV(nil, m.Key, m.CreateRevision, m.ModRevision, m.Version, m.Value, m.Lease)
		if !bytes.Equal(got, want) {
			t.Fatalf("%v: %x, want %x", m, got, want)
		}
		if n := KVSize(len(m.Key), m.CreateRevision, m.ModRevision, m.Version, len(m.Value), m.Lease); n != len(want) {
			t.Fatalf("%v: size %d, want %d", m, n, len(want))
		}
		kv, err := DecodeKV(want)
		if err != nil || !bytes.Equal(kv.Key, m.Key) || kv.Create != m.CreateRevision || kv.Mod != m.ModRevision ||
			kv.Version != m.Version || kv.Lease != m.Lease || !bytes.Equal(kv.Value, m.Value) {
			t.Fatalf("%v: decoded %+v, %v", m, kv, err)
		}
	}
}

func TestDecodeKVRefuses(t *testing.T) {
	whole := AppendKV(nil, []byte("key"), 300, 300, 1, []byte("value"), 1<<40)
	ends := map[int]bool{} // a cut between two fields is a good message
	for rest := whole; len(rest) > 0; {
		_, _, n := protowire.ConsumeField(rest)
		rest = rest[n:]
		ends[len(whole)-len(rest)] = true
	}
	for n := 1; n < len(whole); n++ {
		if _, err := DecodeKV(whole[:n]); (err == nil) != ends[n] {
			t.Errorf("cut to %d bytes: error %v", n, err)
		}
	}
	if _, err := DecodeKV([]byte{0xff, 0xff, 0xff}); err == nil {
		t.Error("a broken tag is accepted")
	}
	if kv, err := DecodeKV(nil); err != nil || kv.Key != nil {
		t.Errorf("DSK-17: an empty record: %+v, %v", kv, err)
	}
	if kv, err := DecodeKV(append([]byte{15 << 3, 9}, whole...)); err != nil || string(kv.Key) != "key" {
		t.Errorf("an unknown field: %+v, %v", kv, err)
	}
}

func FuzzDecodeKV(f *testing.F) {
	f.Add(AppendKV(nil, []byte("key"), 300, 300, 1, []byte("value"), 1<<40))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		kv, err := DecodeKV(b)
		var m mvccpb.KeyValue
		if want := proto.Unmarshal(b, &m); want == nil && err != nil {
			t.Fatalf("refused what protobuf accepts: %v", err)
		}
		if err == nil && len(kv.Value) > len(b) {
			t.Fatalf("a value of %d bytes in %d", len(kv.Value), len(b))
		}
	})
}
