package etcdapi

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
)

func TestPut(t *testing.T) {
	k := newKVTest(t, Config{})
	if _, err := k.lease.LeaseGrant(k.ctx, &pb.LeaseGrantRequest{ID: 5, TTL: 60}); err != nil {
		t.Fatal(err)
	}
	a := []byte("a")
	for _, tt := range []struct {
		name string
		req  *pb.PutRequest
		prev string
		now  string
		on   int64 // lease
	}{
		{"PUT-9", &pb.PutRequest{Key: a, Value: []byte("1"), PrevKv: true}, "", "a=1(1,2,2)", 0},
		{"PUT-8", &pb.PutRequest{Key: a, Value: []byte("2"), Lease: 5, PrevKv: true}, "a=1(1,2,2)", "a=2(2,2,3)", 5},
		{"PUT-7", &pb.PutRequest{Key: a, Value: []byte("3"), IgnoreLease: true}, "", "a=3(3,2,4)", 5},
		{"PUT-6", &pb.PutRequest{Key: a, IgnoreValue: true}, "", "a=3(4,2,5)", 0},
		{"PUT-2", &pb.PutRequest{Key: a}, "", "a=(5,2,6)", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := k.kv.Put(k.ctx, tt.req)
			if err != nil {
				t.Fatal(err)
			}
			prev := ""
			if resp.PrevKv != nil {
				prev = show([]*mvccpb.KeyValue{resp.PrevKv})
			}
			now := k.get(&pb.RangeRequest{Key: a})
			if prev != tt.prev || show(now.Kvs) != tt.now || now.Kvs[0].Lease != tt.on || resp.Header.Revision != now.Kvs[0].ModRevision {
				t.Errorf("prev %q, now %s, lease %d, header %v", prev, show(now.Kvs), now.Kvs[0].Lease, resp.Header)
			}
		})
	}
	t.Run("PUT-3", func(t *testing.T) {
		_, err := k.kv.Put(k.ctx, &pb.PutRequest{Key: []byte("none"), IgnoreValue: true, Lease: 99})
		wantStatus(t, err, codes.NotFound, "etcdserver: requested lease not found")
		_, err = k.kv.Put(k.ctx, &pb.PutRequest{Key: []byte("none"), IgnoreValue: true})
		wantStatus(t, err, codes.InvalidArgument, "etcdserver: key not found")
	})
}

func TestDeleteRange(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("a", "1") // 2
	k.put("b", "2") // 3
	t.Run("DEL-2", func(t *testing.T) {
		got := k.del("x", "")
		k.equal("nothing", fmt.Sprint(got.Deleted, got.Header.Revision), "0 3")
	})
	t.Run("DEL-3", func(t *testing.T) {
		got, err := k.kv.DeleteRange(k.ctx, &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte{0}, PrevKv: true})
		if err != nil {
			t.Fatal(err)
		}
		k.equal("both", fmt.Sprint(got.Deleted, got.Header.Revision, " ", show(got.PrevKvs)), "2 4 a=1(1,2,2) b=2(1,3,3)")
	})
}

// The sequence of 18.1.
func TestCompactSequence(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("a", "1")
	k.put("a", "2")
	k.put("b", "1")
	k.del("b", "")
	k.put("a", "3")
	k.put("c", "1")
	k.put("b", "2")
	const compacted = "etcdserver: mvcc: required revision has been compacted"
	const future = "etcdserver: mvcc: required revision is a future revision"
	compact := func(rev int64) (*pb.CompactionResponse, error) {
		return k.kv.Compact(k.ctx, &pb.CompactionRequest{Revision: rev, Physical: true})
	}
	t.Run("CMP-2", func(t *testing.T) {
		resp, err := compact(5)
		if err != nil || resp.Header.Revision != 8 {
			t.Fatalf("%v, %v", resp, err)
		}
	})
	t.Run("CMP-1", func(t *testing.T) {
		for _, rev := range []int64{5, 4, 0} {
			_, err := compact(rev)
			wantStatus(t, err, codes.OutOfRange, compacted)
		}
		_, err := compact(9)
		wantStatus(t, err, codes.OutOfRange, future)
	})
	t.Run("CMP-3", func(t *testing.T) {
		for rev, want := range map[int64]string{
			5: "a=2(2,2,3)",
			6: "a=3(3,2,6)",
			7: "a=3(3,2,6) c=1(1,7,7)",
			8: "a=3(3,2,6) b=2(1,8,8) c=1(1,7,7)",
			0: "a=3(3,2,6) b=2(1,8,8) c=1(1,7,7)",
		} {
			got := k.get(&pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: rev})
			k.equal(fmt.Sprint("at ", rev), show(got.Kvs), want)
		}
		for rev, text := range map[int64]string{1: compacted, 4: compacted, 9: future} {
			_, err := k.kv.Range(k.ctx, &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: rev})
			wantStatus(t, err, codes.OutOfRange, text)
		}
	})
	t.Run("REV-6", func(t *testing.T) {
		k.compact(8)
		k.del("\x00", "\x00")
		k.compact(9)
		k.equal("revision", k.get(&pb.RangeRequest{Key: []byte("a")}).Header.Revision, 9)
	})
}
