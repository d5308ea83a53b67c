package difftest

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Short forms of the requests that tables use most. "\x00" as end means "all
// keys from the first on", as on the wire.

// Put stores v under k.
func Put(k, v string) *pb.PutRequest { return &pb.PutRequest{Key: []byte(k), Value: []byte(v)} }

// PutLease stores v under k with a lease.
func PutLease(k, v string, lease int64) *pb.PutRequest {
	return &pb.PutRequest{Key: []byte(k), Value: []byte(v), Lease: lease}
}

// Get reads one key.
func Get(k string) *pb.RangeRequest { return &pb.RangeRequest{Key: []byte(k)} }

// List reads [k, end).
func List(k, end string) *pb.RangeRequest {
	return &pb.RangeRequest{Key: []byte(k), RangeEnd: []byte(end)}
}

// All reads every key at a revision, 0 for the current one.
func All(rev int64) *pb.RangeRequest {
	return &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: rev}
}

// Delete removes one key.
func Delete(k string) *pb.DeleteRangeRequest { return &pb.DeleteRangeRequest{Key: []byte(k)} }

// DeleteAll removes [k, end).
func DeleteAll(k, end string) *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: []byte(k), RangeEnd: []byte(end)}
}

// Compact compacts and waits for the removal.
func Compact(rev int64) *pb.CompactionRequest {
	return &pb.CompactionRequest{Revision: rev, Physical: true}
}

// Grant asks for a lease with a chosen id.
func Grant(id, ttl int64) *pb.LeaseGrantRequest { return &pb.LeaseGrantRequest{ID: id, TTL: ttl} }

// Txn makes a transaction request from compares and the ops of both branches.
func Txn(cmp []*pb.Compare, then, otherwise []*pb.RequestOp) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: cmp, Success: then, Failure: otherwise}
}

// Do is a transaction without compares.
func Do(ops ...*pb.RequestOp) *pb.TxnRequest { return Txn(nil, ops, nil) }

// Ops wraps requests of the four kinds a transaction takes.
func Ops(reqs ...any) []*pb.RequestOp {
	var ops []*pb.RequestOp
	for _, r := range reqs {
		op := &pb.RequestOp{}
		switch r := r.(type) {
		case *pb.PutRequest:
			op.Request = &pb.RequestOp_RequestPut{RequestPut: r}
		case *pb.RangeRequest:
			op.Request = &pb.RequestOp_RequestRange{RequestRange: r}
		case *pb.DeleteRangeRequest:
			op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}
		case *pb.TxnRequest:
			op.Request = &pb.RequestOp_RequestTxn{RequestTxn: r}
		}
		ops = append(ops, op)
	}
	return ops
}

// If lists compares.
func If(c ...*pb.Compare) []*pb.Compare { return c }

// Version, CreateRev, ModRev, Value and Lease compare one property of a key.
func Version(k string, r pb.Compare_CompareResult, v int64) *pb.Compare {
	return &pb.Compare{Key: []byte(k), Result: r, Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: v}}
}

func CreateRev(k string, r pb.Compare_CompareResult, v int64) *pb.Compare {
	return &pb.Compare{Key: []byte(k), Result: r, Target: pb.Compare_CREATE, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: v}}
}

func ModRev(k string, r pb.Compare_CompareResult, v int64) *pb.Compare {
	return &pb.Compare{Key: []byte(k), Result: r, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: v}}
}

func Value(k string, r pb.Compare_CompareResult, v string) *pb.Compare {
	return &pb.Compare{Key: []byte(k), Result: r, Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte(v)}}
}

func LeaseOf(k string, r pb.Compare_CompareResult, v int64) *pb.Compare {
	return &pb.Compare{Key: []byte(k), Result: r, Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{Lease: v}}
}

// Over extends a compare to the range [key, end).
func Over(c *pb.Compare, end string) *pb.Compare {
	c.RangeEnd = []byte(end)
	return c
}

// The results of a compare.
const (
	Equal    = pb.Compare_EQUAL
	Greater  = pb.Compare_GREATER
	Less     = pb.Compare_LESS
	NotEqual = pb.Compare_NOT_EQUAL
)
