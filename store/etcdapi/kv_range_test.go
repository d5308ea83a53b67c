package etcdapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func TestRange(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("a", "3") // 2
	k.put("b", "2") // 3
	k.put("c", "1") // 4
	k.put("a", "9") // 5
	k.put("d", "")  // 6
	k.del("d", "")  // 7
	all := func(f func(*pb.RangeRequest)) *pb.RangeRequest {
		req := &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("e")}
		if f != nil {
			f(req)
		}
		return req
	}
	const (
		a5 = "a=9(2,2,5)"
		b3 = "b=2(1,3,3)"
		c4 = "c=1(1,4,4)"
	)
	for _, tt := range []struct {
		name  string
		req   *pb.RangeRequest
		kvs   string
		count int64
		more  bool
	}{
		{"RNG-2", &pb.RangeRequest{Key: []byte("b")}, b3, 1, false},
		{"RNG-3", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("c")}, a5 + " " + b3, 2, false},
		{"RNG-4/from", &pb.RangeRequest{Key: []byte("b"), RangeEnd: []byte{0}}, b3 + " " + c4, 2, false},
		{"RNG-4/all", &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}, a5 + " " + b3 + " " + c4, 3, false},
		{"RNG-5", &pb.RangeRequest{Key: []byte("c"), RangeEnd: []byte("b")}, "", 0, false},
		{"RNG-5/same", &pb.RangeRequest{Key: []byte("c"), RangeEnd: []byte("c")}, "", 0, false},
		{"RNG-6", all(func(r *pb.RangeRequest) { r.Limit = 2 }), a5 + " " + b3, 3, true},
		{"RNG-6/exact", all(func(r *pb.RangeRequest) { r.Limit = 3 }), a5 + " " + b3 + " " + c4, 3, false},
		{"RNG-6/negative", all(func(r *pb.RangeRequest) { r.Limit = -1 }), a5 + " " + b3 + " " + c4, 3, false},
		{"TOP-7", all(func(r *pb.RangeRequest) { r.Limit, r.MinModRevision = 1, 4 }), a5, 3, true},
		{"RNG-8", all(func(r *pb.RangeRequest) { r.Revision = 3 }), "a=3(1,2,2) " + b3, 2, false},
		{"RNG-8/deleted since", all(func(r *pb.RangeRequest) { r.Revision = 6 }), a5 + " " + b3 + " " + c4 + " d=(1,6,6)", 4, false},
		{"RNG-9/value", all(func(r *pb.RangeRequest) { r.SortTarget, r.SortOrder = pb.RangeRequest_VALUE, pb.RangeRequest_ASCEND }), c4 + " " + b3 + " " + a5, 3, false},
		{"RNG-10", all(func(r *pb.RangeRequest) {
			r.SortTarget, r.SortOrder, r.Limit = pb.RangeRequest_MOD, pb.RangeRequest_DESCEND, 1
		}), a5, 3, true},
		{"V-3", all(func(r *pb.RangeRequest) { r.SortTarget, r.Limit = pb.RangeRequest_VALUE, 1 }), c4, 3, true},
		{"RNG-12", all(func(r *pb.RangeRequest) { r.MinModRevision, r.MaxCreateRevision = 4, 3 }), a5, 3, false},
		{"RNG-12/negative", all(func(r *pb.RangeRequest) { r.MaxModRevision = -1 }), "", 3, false},
		{"RNG-13", all(func(r *pb.RangeRequest) { r.CountOnly, r.Limit, r.MinModRevision = true, 1, 9 }), "", 3, false},
		{"RNG-14", all(func(r *pb.RangeRequest) { r.KeysOnly, r.Limit = true, 1 }), "a=(2,2,5)", 3, true},
		{"RNG-15", all(func(r *pb.RangeRequest) {
			r.KeysOnly, r.SortTarget, r.SortOrder = true, pb.RangeRequest_VALUE, pb.RangeRequest_DESCEND
		}), "a=(2,2,5) b=(1,3,3) c=(1,4,4)", 3, false},
		{"RNG-16", all(func(r *pb.RangeRequest) { r.Serializable = true }), a5 + " " + b3 + " " + c4, 3, false},
		{"RNG-17", &pb.RangeRequest{Key: []byte("nope")}, "", 0, false},
		{"RNG-17/deleted", &pb.RangeRequest{Key: []byte("d")}, "", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := k.get(tt.req)
			if show(got.Kvs) != tt.kvs || got.Count != tt.count || got.More != tt.more {
				t.Errorf("got %s, count %d, more %v\nwant %s, count %d, more %v", show(got.Kvs), got.Count, got.More, tt.kvs, tt.count, tt.more)
			}
			want := &pb.ResponseHeader{ClusterId: k.s.clusterID, MemberId: k.s.memberID, Revision: 7, RaftTerm: k.s.term} // TOP-8
			if !proto.Equal(got.Header, want) {
				t.Errorf("header %v, want %v", got.Header, want)
			}
		})
	}
	t.Run("RNG-7/future", func(t *testing.T) {
		_, err := k.kv.Range(k.ctx, all(func(r *pb.RangeRequest) { r.Revision = 8 }))
		wantStatus(t, err, codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision")
	})
	t.Run("RNG-1", func(t *testing.T) {
		_, err := k.kv.Range(k.ctx, &pb.RangeRequest{})
		wantStatus(t, err, codes.InvalidArgument, "etcdserver: key is not provided")
	})
}

func TestRangeKeysOnlyKeepsLease(t *testing.T) {
	k := newKVTest(t, Config{})
	if _, err := k.lease.LeaseGrant(k.ctx, &pb.LeaseGrantRequest{ID: 77, TTL: 60}); err != nil {
		t.Fatal(err)
	}
	k.putLease("a", "1", 77)
	t.Run("V-2", func(t *testing.T) {
		for _, target := range []pb.RangeRequest_SortTarget{pb.RangeRequest_KEY, pb.RangeRequest_VALUE} {
			kv := k.get(&pb.RangeRequest{Key: []byte("a"), KeysOnly: true, SortTarget: target}).Kvs[0]
			if kv.Lease != 77 || kv.Value != nil {
				t.Errorf("sorted by %v: %v", target, kv)
			}
		}
	})
}

// fill puts n keys p/00000 … with values of size bytes and returns the values by key.
func (t *kvTest) fill(n, size int) map[string][]byte {
	t.Helper()
	want := make(map[string][]byte)
	for base := 0; base < n; base += 100 {
		var ops []*pb.RequestOp
		for i := base; i < min(base+100, n); i++ {
			key := fmt.Sprintf("p/%05d", i)
			want[key] = bytes.Repeat([]byte{byte(i), byte(i >> 8)}, size/2)
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: []byte(key), Value: want[key]}}})
		}
		t.txn(&pb.TxnRequest{Success: ops})
	}
	return want
}

var underP = pb.RangeRequest{Key: []byte("p/"), RangeEnd: []byte("p0")}

func like(req *pb.RangeRequest, change func(*pb.RangeRequest)) *pb.RangeRequest {
	out := proto.Clone(req).(*pb.RangeRequest)
	change(out)
	return out
}

func TestLargeRange(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	want := k.fill(1500, 2000)
	for name, change := range map[string]func(*pb.RangeRequest){
		"RNG-19":        func(*pb.RangeRequest) {},
		"RNG-6":         func(r *pb.RangeRequest) { r.Limit = 1100 },
		"RNG-14":        func(r *pb.RangeRequest) { r.KeysOnly = true },
		"RNG-9/sorted":  func(r *pb.RangeRequest) { r.SortOrder, r.SortTarget = pb.RangeRequest_ASCEND, pb.RangeRequest_CREATE },
		"RNG-9/descend": func(r *pb.RangeRequest) { r.SortOrder = pb.RangeRequest_DESCEND },
	} {
		t.Run(name, func(t *testing.T) {
			req := like(&underP, change)
			got := k.get(req)
			n := len(want)
			if req.Limit > 0 {
				n = int(req.Limit)
			}
			if len(got.Kvs) != n || got.Count != int64(len(want)) || got.More != (n < len(want)) {
				t.Fatalf("%d keys, count %d, more %v", len(got.Kvs), got.Count, got.More)
			}
			for i, kv := range got.Kvs {
				at := i
				if req.SortOrder == pb.RangeRequest_DESCEND {
					at = len(want) - 1 - i
				}
				key := fmt.Sprintf("p/%05d", at)
				if string(kv.Key) != key && req.SortTarget == pb.RangeRequest_KEY {
					t.Fatalf("key %d is %q", i, kv.Key)
				}
				if !req.KeysOnly && !bytes.Equal(kv.Value, want[string(kv.Key)]) {
					t.Fatalf("value of %s is wrong", kv.Key)
				}
			}
			k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
		})
	}
}

func TestRangeOfOneHugeValue(t *testing.T) {
	k := newKVTest(t, Config{})
	value := strings.Repeat("x", 1_500_000)
	k.put("p/1", value)
	k.put("p/2", "small")
	got := k.get(&underP)
	if len(got.Kvs) != 2 || string(got.Kvs[0].Value) != value || string(got.Kvs[1].Value) != "small" {
		t.Error("a value larger than a chunk came back different")
	}
	k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
}

func TestLargeRangesWaitForTheBudget(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	k.fill(400, 2000)
	held, err := k.s.budget.acquire(k.ctx, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	type result struct {
		n   int
		err error
	}
	results := make(chan result, 2)
	list := func(ctx context.Context, limit int64) {
		resp, err := k.kv.Range(ctx, &pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, Limit: limit})
		results <- result{len(resp.GetKvs()), err}
	}
	go list(ctx, 0)
	k.until("the list waits", func() bool { return k.s.budget.stats().Waiting == 1 })
	go list(k.ctx, 399) // not the same list: that would not wait a second time
	k.until("both wait", func() bool { return k.s.budget.stats().Waiting == 2 })
	if n := len(k.get(&pb.RangeRequest{Key: []byte("p/00001")}).Kvs); n != 1 { // a small one passes
		t.Errorf("point read found %d keys", n)
	}
	t.Run("RNG-20", func(t *testing.T) {
		cancel()
		r := <-results
		wantStatus(t, r.err, codes.Canceled, "context canceled")
		k.until("it no longer waits", func() bool { return k.s.budget.stats().Waiting == 1 })
	})
	k.s.budget.release(held)
	if r := <-results; r.err != nil || r.n != 399 {
		t.Errorf("after the wait: %d keys, %v", r.n, r.err)
	}
	k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
	if n := k.s.budget.stats().Waits; n != 2 {
		t.Errorf("%d waits are counted", n)
	}
}

func TestTooLargeToSend(t *testing.T) {
	t.Run("GRPC-4", func(t *testing.T) {
		s := &Server{budget: testBudget(1 << 20)}
		_, err := s.encodeItems(t.Context(), math.MaxInt32, false, nil)
		wantStatus(t, err, codes.ResourceExhausted, "trying to send message larger than max (2147483647 vs. 2147483647)")
		if errors.Is(err, context.Canceled) || s.budget.stats().InUse != 0 {
			t.Error("it took from the budget")
		}
	})
}
