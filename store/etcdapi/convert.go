package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
)

// Conversions from protobuf requests to the store's; what has no valid form is left out. The store copies what
// it keeps, so keys and values are shared with the request.

func rangeRequest(r *pb.RangeRequest) *store.RangeRequest {
	return &store.RangeRequest{
		KeyRange:  store.KeyRange{Key: r.Key, End: r.RangeEnd},
		Revision:  max(r.Revision, 0), // also in a transaction (V-5)
		Limit:     r.Limit,
		Order:     store.Order(r.SortOrder),
		Target:    store.Target(r.SortTarget),
		KeysOnly:  r.KeysOnly,
		CountOnly: r.CountOnly,
		MinMod:    r.MinModRevision,
		MaxMod:    r.MaxModRevision,
		MinCreate: r.MinCreateRevision,
		MaxCreate: r.MaxCreateRevision,
	}
}

func putRequest(r *pb.PutRequest) *store.PutRequest {
	return &store.PutRequest{
		Key:         r.Key,
		Value:       r.Value,
		Lease:       r.Lease,
		PrevKV:      r.PrevKv,
		IgnoreValue: r.IgnoreValue,
		IgnoreLease: r.IgnoreLease,
	}
}

func deleteRequest(r *pb.DeleteRangeRequest) *store.DeleteRequest {
	return &store.DeleteRequest{
		KeyRange: store.KeyRange{Key: r.Key, End: r.RangeEnd},
		PrevKV:   r.PrevKv,
	}
}

func txnRequest(r *pb.TxnRequest) *store.TxnRequest {
	return &store.TxnRequest{
		Compare: compares(r.Compare),
		Success: ops(r.Success),
		Failure: ops(r.Failure),
	}
}

func ops(from []*pb.RequestOp) []store.Op {
	if len(from) == 0 {
		return nil
	}
	to := make([]store.Op, len(from))
	for i, op := range from {
		switch r := op.GetRequest().(type) {
		case *pb.RequestOp_RequestRange:
			to[i].Range = rangeRequest(r.RequestRange)
		case *pb.RequestOp_RequestPut:
			to[i].Put = putRequest(r.RequestPut)
		case *pb.RequestOp_RequestDeleteRange:
			to[i].Delete = deleteRequest(r.RequestDeleteRange)
		case *pb.RequestOp_RequestTxn:
			to[i].Txn = txnRequest(r.RequestTxn)
		}
	}
	return to
}

func compares(from []*pb.Compare) []store.Compare {
	if len(from) == 0 {
		return nil
	}
	to := make([]store.Compare, len(from))
	for i, c := range from {
		to[i] = store.Compare{
			KeyRange: store.KeyRange{Key: c.Key, End: c.RangeEnd},
			Target:   store.CompareTarget(c.Target),
			Result:   store.CompareResult(c.Result),
		}
		// A union that does not fit the target reads as 0 or empty (TXN-23).
		switch c.Target {
		case pb.Compare_VERSION:
			to[i].Int = c.GetVersion()
		case pb.Compare_CREATE:
			to[i].Int = c.GetCreateRevision()
		case pb.Compare_MOD:
			to[i].Int = c.GetModRevision()
		case pb.Compare_VALUE:
			to[i].Value = c.GetValue()
		case pb.Compare_LEASE:
			to[i].Int = c.GetLease()
		}
	}
	return to
}
