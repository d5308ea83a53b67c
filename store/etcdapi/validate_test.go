package etcdapi

import (
	"bytes"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/status"
)

func putOp(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key)}}}
}

func delOp(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

func getOp(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}
}

func txnOp(success, failure []*pb.RequestOp) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{
		RequestTxn: &pb.TxnRequest{Success: success, Failure: failure}}}
}

func gets(n int, more ...*pb.RequestOp) []*pb.RequestOp {
	var ops []*pb.RequestOp
	for range n {
		ops = append(ops, getOp("k"))
	}
	return append(ops, more...)
}

// wantText checks an error by its text without "etcdserver: ", "" for none.
func wantText(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = strings.TrimPrefix(status.Convert(err).Message(), "etcdserver: ")
	}
	if got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

const (
	emptyKey  = "key is not provided"
	noKey     = "key not found"
	badSort   = "invalid sort option"
	tooMany   = "too many operations in txn request"
	duplicate = "duplicate key given in txn request"
)

func TestCheckRange(t *testing.T) {
	key := []byte("k")
	for _, tt := range []struct {
		name string
		req  *pb.RangeRequest
		want string
	}{
		{"RNG-1", &pb.RangeRequest{}, emptyKey},
		{"RNG-11/order", &pb.RangeRequest{Key: key, SortOrder: 3}, badSort},
		{"RNG-11/target", &pb.RangeRequest{Key: key, SortTarget: 5}, badSort},
		{"RNG-11/negative", &pb.RangeRequest{Key: key, SortTarget: -1}, badSort},
		{"RNG-18", &pb.RangeRequest{SortOrder: 9}, emptyKey},
		{"RNG-9", &pb.RangeRequest{Key: key, SortOrder: 2, SortTarget: 4}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { wantText(t, checkRange(tt.req), tt.want) })
	}
}

func TestCheckRangeStream(t *testing.T) {
	key := []byte("k")
	const order = "RangeStream does not support custom sort orders"
	const bounds = "RangeStream does not support revision filters"
	for _, tt := range []struct {
		name string
		req  *pb.RangeRequest
		want string
	}{
		{"RS-10/key", &pb.RangeRequest{SortOrder: pb.RangeRequest_DESCEND}, emptyKey},
		{"RS-10/sort", &pb.RangeRequest{Key: key, SortOrder: 7}, badSort},
		{"RS-9/descend", &pb.RangeRequest{Key: key, SortOrder: pb.RangeRequest_DESCEND}, order},
		{"RS-9/ascend by mod", &pb.RangeRequest{Key: key, SortOrder: pb.RangeRequest_ASCEND, SortTarget: pb.RangeRequest_MOD}, order},
		{"RS-9/ascend by key", &pb.RangeRequest{Key: key, SortOrder: pb.RangeRequest_ASCEND}, ""},
		{"RS-9/none by mod", &pb.RangeRequest{Key: key, SortTarget: pb.RangeRequest_MOD}, ""},
		{"RS-9/bounds", &pb.RangeRequest{Key: key, MaxCreateRevision: 1}, bounds},
	} {
		t.Run(tt.name, func(t *testing.T) { wantText(t, checkRangeStream(tt.req), tt.want) })
	}
}

func TestCheckPutAndDelete(t *testing.T) {
	key, value := []byte("k"), []byte("v")
	for _, tt := range []struct {
		name string
		req  *pb.PutRequest
		want string
	}{
		{"PUT-1/key", &pb.PutRequest{IgnoreValue: true, Value: value}, emptyKey},
		{"PUT-1/value", &pb.PutRequest{Key: key, IgnoreValue: true, Value: value, IgnoreLease: true, Lease: 1}, "value is provided"},
		{"PUT-1/lease", &pb.PutRequest{Key: key, IgnoreLease: true, Lease: 1}, "lease is provided"},
		{"PUT-2", &pb.PutRequest{Key: key}, ""},
		{"PUT-6", &pb.PutRequest{Key: key, IgnoreValue: true, IgnoreLease: true}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { wantText(t, checkPut(tt.req), tt.want) })
	}
	t.Run("DEL-1", func(t *testing.T) { wantText(t, checkDelete(&pb.DeleteRangeRequest{}), emptyKey) })
}

func TestCheckSize(t *testing.T) {
	s := &Server{cfg: Config{MaxRequestBytes: DefaultMaxRequestBytes}}
	for size, want := range map[int]string{
		1572834: "",
		1572844: "request is too large",
	} {
		req := &pb.PutRequest{Key: []byte("key"), Value: bytes.Repeat([]byte{1}, size)}
		t.Run("GRPC-2", func(t *testing.T) { wantText(t, s.checkSize(req), want) })
	}
}

func TestCheckTxn(t *testing.T) {
	cmp := func(c *pb.Compare) *pb.TxnRequest { return &pb.TxnRequest{Compare: []*pb.Compare{c}} }
	ops := func(ops ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: ops} }
	key := []byte("k")
	for _, tt := range []struct {
		name string
		req  *pb.TxnRequest
		want string
	}{
		{"TXN-11", &pb.TxnRequest{}, ""},
		{"TXN-1/128", ops(gets(128)...), ""},
		{"TXN-1/129", ops(gets(129)...), tooMany},
		{"TXN-1/129 in failure", &pb.TxnRequest{Failure: gets(129)}, tooMany},
		{"TXN-1/62 and two of 66", ops(gets(60, txnOp(gets(66), nil), txnOp(gets(66), nil))...), ""},
		{"TXN-1/62 and 68", ops(gets(60, txnOp(gets(68), nil), txnOp(gets(66), nil))...), tooMany},
		{"TXN-1/1 and 127", ops(txnOp(gets(127), nil)), ""},
		{"TXN-1/1 and 128", ops(txnOp(gets(128), nil)), tooMany},
		{"TXN-2/count before keys", ops(gets(129, putOp(""))...), tooMany},
		{"TXN-2/compare before ops", &pb.TxnRequest{Compare: []*pb.Compare{{}}, Success: []*pb.RequestOp{{}}}, emptyKey},
		{"TXN-2/success before failure", &pb.TxnRequest{Success: []*pb.RequestOp{{}}, Failure: []*pb.RequestOp{putOp("")}}, noKey},
		{"TXN-2/branch not taken", &pb.TxnRequest{Failure: []*pb.RequestOp{putOp("")}}, emptyKey},
		{"TXN-2/form before duplicates", &pb.TxnRequest{Success: []*pb.RequestOp{putOp("a"), putOp("a")}, Failure: []*pb.RequestOp{{}}}, noKey},
		{"TXN-3/empty", ops(&pb.RequestOp{}), noKey},
		{"TXN-3/sort", ops(&pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key, SortOrder: 9}}}), badSort},
		{"TXN-3/nested", ops(txnOp([]*pb.RequestOp{delOp("", "")}, nil)), emptyKey},
		{"V-11/target", cmp(&pb.Compare{Key: key, Target: 9}), "unknown target or result in compare"},
		{"V-11/result", cmp(&pb.Compare{Key: key, Result: 9}), "unknown target or result in compare"},

		{"TXN-4/put put", ops(putOp("a"), putOp("a")), duplicate},
		{"TXN-4/put delete", ops(putOp("a"), delOp("a", "")), duplicate},
		{"TXN-4/delete put", ops(delOp("a", "c"), putOp("b")), duplicate},
		{"TXN-4/put beside delete", ops(delOp("a", "c"), putOp("c"), putOp("a0")), duplicate},
		{"TXN-4/put at the end of a delete", ops(delOp("a", "c"), putOp("c")), ""},
		{"TXN-4/put before a delete", ops(putOp("0"), delOp("a", "c")), ""},
		{"TXN-4/two deletes", ops(delOp("a", "c"), delOp("b", "d")), ""},
		{"TXN-4/failure", &pb.TxnRequest{Failure: []*pb.RequestOp{putOp("a"), putOp("a")}}, duplicate},
		{"TXN-4/both branches", &pb.TxnRequest{Success: []*pb.RequestOp{putOp("a")}, Failure: []*pb.RequestOp{putOp("a")}}, ""},
		{"TXN-4/nested branches", ops(txnOp([]*pb.RequestOp{putOp("a")}, []*pb.RequestOp{putOp("a")})), ""},
		{"TXN-4/nested put and delete in branches", ops(txnOp([]*pb.RequestOp{putOp("a")}, []*pb.RequestOp{delOp("a", "")})), ""},
		{"TXN-4/nested against outer", ops(putOp("a"), txnOp(nil, []*pb.RequestOp{putOp("a")})), duplicate},
		{"TXN-4/outer delete over nested", ops(txnOp([]*pb.RequestOp{putOp("b")}, nil), delOp("a", "c")), duplicate},
		{"TXN-4/siblings", ops(txnOp([]*pb.RequestOp{putOp("a")}, nil), txnOp(nil, []*pb.RequestOp{putOp("a")})), duplicate},
		{"TXN-4/siblings put delete", ops(txnOp([]*pb.RequestOp{putOp("a")}, nil), txnOp([]*pb.RequestOp{delOp("a", "")}, nil)), duplicate},
		{"TXN-4/inside nested", ops(txnOp([]*pb.RequestOp{putOp("a"), putOp("a")}, nil)), duplicate},
		{"TXN-4/own keys hide nothing", ops(
			txnOp([]*pb.RequestOp{putOp("b")}, []*pb.RequestOp{delOp("a", "d")}), putOp("c")), duplicate},
		{"V-4", ops(delOp("a", "\x00"), putOp("d")), duplicate},
	} {
		t.Run(tt.name, func(t *testing.T) { wantText(t, checkTxn(tt.req, DefaultMaxTxnOps), tt.want) })
	}
}

func TestReadOnly(t *testing.T) {
	for _, tt := range []struct {
		name string
		req  *pb.TxnRequest
		want bool
	}{
		{"TXN-12/empty", &pb.TxnRequest{}, true},
		{"TXN-12/ranges", &pb.TxnRequest{Success: gets(2), Failure: gets(1)}, true},
		{"TXN-12/put", &pb.TxnRequest{Success: gets(1), Failure: gets(1, putOp("a"))}, false},
		{"TXN-12/nested", &pb.TxnRequest{Success: []*pb.RequestOp{txnOp(gets(1), nil)}}, false},
	} {
		if got := readOnly(tt.req); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
