package etcdapi

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

func putValueOp(key, value string) *pb.RequestOp {
	op := putOp(key)
	op.GetRequestPut().Value = []byte(value)
	return op
}

func rangeOp(key, end string) *pb.RequestOp {
	op := getOp(key)
	op.GetRequestRange().RangeEnd = []byte(end)
	return op
}

// showTxn writes a TxnResponse in one line: each response with the difference of
// its header's revision to base.
func showTxn(r *pb.TxnResponse, base int64) string {
	rev := func(h *pb.ResponseHeader) string {
		if h == nil {
			return "none"
		}
		if h.ClusterId != 0 || h.MemberId != 0 || h.RaftTerm != 0 { // HDR-2
			return "full header"
		}
		return fmt.Sprintf("+%d", h.Revision-base)
	}
	var parts []string
	for _, op := range r.Responses {
		switch op := op.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			x := op.ResponseRange
			parts = append(parts, fmt.Sprintf("range%s %d[%s]", rev(x.Header), x.Count, showKeys(x.Kvs)))
		case *pb.ResponseOp_ResponsePut:
			parts = append(parts, "put"+rev(op.ResponsePut.Header))
		case *pb.ResponseOp_ResponseDeleteRange:
			x := op.ResponseDeleteRange
			parts = append(parts, fmt.Sprintf("delete%s %d", rev(x.Header), x.Deleted))
		case *pb.ResponseOp_ResponseTxn:
			x := op.ResponseTxn
			if x.Header == nil || x.Header.Revision != 0 { // HDR-3
				parts = append(parts, "header?")
			}
			parts = append(parts, fmt.Sprintf("txn %v(%s)", x.Succeeded, showTxn(x, base)))
		}
	}
	return strings.Join(parts, ", ")
}

// The sequences of 18.2.
func TestTxnSequences(t *testing.T) {
	k := newKVTest(t, Config{})
	success := func(ops ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: ops} }
	r := k.put("t/a", "1")
	t.Run("TXN-8", func(t *testing.T) {
		got := k.txn(success(putValueOp("t/b", "1"), rangeOp("t/", "t0"), putValueOp("t/c", "2"),
			rangeOp("t/", "t0"), delOp("t/a", ""), rangeOp("t/", "t0"), delOp("nope", "")))
		k.equal("ops", showTxn(got, r), "put+1, range+1 2[t/a t/b], put+1, range+1 3[t/a t/b t/c], delete+1 1, range+1 2[t/b t/c], delete+1 0")
		k.equal("outer", fmt.Sprint(got.Succeeded, got.Header.Revision-r, got.Header.MemberId == k.s.memberID), "true 1 true")
	})
	r = k.get(&pb.RangeRequest{Key: []byte("x")}).Header.Revision
	t.Run("TXN-9", func(t *testing.T) {
		got := k.txn(success(delOp("zzz", ""), putOp("t/p"), delOp("zzz", "")))
		k.equal("ops", showTxn(got, r), "delete+0 0, put+1, delete+1 0")
		got = k.txn(success(getOp("t/b"), putValueOp("t/b", "7"), getOp("t/b")))
		k.equal("ops", showTxn(got, r), "range+1 1[t/b], put+2, range+2 1[t/b]")
		k.equal("before", show(got.Responses[0].GetResponseRange().Kvs), fmt.Sprintf("t/b=1(1,%d,%d)", r, r))
		k.equal("after", show(got.Responses[2].GetResponseRange().Kvs), fmt.Sprintf("t/b=7(2,%d,%d)", r, r+2))
	})
	t.Run("TXN-6", func(t *testing.T) {
		r := k.put("n", "old")
		nested := txnOp([]*pb.RequestOp{putValueOp("n2", "saw-new")}, []*pb.RequestOp{putValueOp("n2", "saw-old")})
		nested.GetRequestTxn().Compare = []*pb.Compare{{Key: []byte("n"), Target: pb.Compare_VALUE,
			TargetUnion: &pb.Compare_Value{Value: []byte("new")}}}
		got := k.txn(success(putValueOp("n", "new"), nested, getOp("n2")))
		k.equal("ops", showTxn(got, r), "put+1, txn false(put+1), range+1 1[n2]")
		k.equal("value", string(got.Responses[2].GetResponseRange().Kvs[0].Value), "saw-old")
	})
	t.Run("TXN-10", func(t *testing.T) {
		before := k.get(&pb.RangeRequest{Key: []byte("x")}).Header.Revision
		got := k.txn(&pb.TxnRequest{})
		k.equal("empty", fmt.Sprint(got.Succeeded, len(got.Responses), got.Header.Revision-before), "true 0 0")
	})
}

func TestTxnErrors(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("a", "1") // 2
	k.put("a", "2") // 3
	k.compact(3)
	at := func(rev int64) *pb.RequestOp {
		op := getOp("a")
		op.GetRequestRange().Revision = rev
		return op
	}
	ignore := putOp("nope")
	ignore.GetRequestPut().IgnoreValue = true
	leased := putOp("a")
	leased.GetRequestPut().Lease = 123
	for _, tt := range []struct {
		name string
		op   *pb.RequestOp
		code codes.Code
		text string
	}{
		{"TXN-7/future", at(4), codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision"},
		{"TXN-7/compacted", at(2), codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"},
		{"TXN-7/lease", leased, codes.NotFound, "etcdserver: requested lease not found"},
		{"TXN-7/key", ignore, codes.InvalidArgument, "etcdserver: key not found"},
		{"TXN-3", &pb.RequestOp{}, codes.InvalidArgument, "etcdserver: key not found"},
		{"V-5", at(-1), codes.OK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := k.kv.Txn(k.ctx, &pb.TxnRequest{Success: []*pb.RequestOp{putOp("b"), tt.op}})
			wantStatus(t, err, tt.code, tt.text)
		})
	}
	t.Run("GRPC-2", func(t *testing.T) {
		big := &pb.TxnRequest{Success: []*pb.RequestOp{putValueOp("big", strings.Repeat("x", 1_572_844))}}
		_, err := k.kv.Txn(k.ctx, big)
		wantStatus(t, err, codes.InvalidArgument, "etcdserver: request is too large")
	})
	t.Run("GRPC-3", func(t *testing.T) {
		_, err := k.kv.Txn(k.ctx, &pb.TxnRequest{Success: []*pb.RequestOp{getOp(strings.Repeat("k", 1_800_000))}})
		wantStatus(t, err, codes.OK, "")
		_, err = k.kv.Range(k.ctx, &pb.RangeRequest{Key: []byte(strings.Repeat("k", 1_800_000))})
		wantStatus(t, err, codes.OK, "")
	})
}

func TestTxnWithLargeAnswer(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	k.fill(300, 2000)
	got := k.txn(&pb.TxnRequest{Success: []*pb.RequestOp{rangeOp("p/", "p0"), delOp("p/", "p0"), rangeOp("p/", "p0")}})
	k.equal("keys", fmt.Sprint(len(got.Responses[0].GetResponseRange().Kvs),
		got.Responses[1].GetResponseDeleteRange().Deleted, got.Responses[2].GetResponseRange().Count), "300 300 0")
	k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
}
