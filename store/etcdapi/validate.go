package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Checks of a request's form, in etcd's order: which of two errors a client sees
// is part of the API. What depends on the state of the store, the store checks.

// envelope is what etcd wraps around a request before it measures it: a header
// with the request's 10-byte ID, and the tag of the request itself. The limit on
// requests is one on the sum (GRPC-2).
const envelope = 14 + 1

// checkSize refuses a write that is larger than Config.MaxRequestBytes.
func (s *Server) checkSize(req proto.Message) error {
	n := proto.Size(req)
	if envelope+protowire.SizeVarint(uint64(n))+n > s.cfg.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

// malformed is the error for a request whose form is wrong: that one, unless there is
// no room for the request either, which etcd looks at first (PUT-1, TXN-2).
func (s *Server) malformed(err error, cost int64) error {
	if cost > 0 && s.store.Full(cost) {
		return rpctypes.ErrGRPCNoSpace
	}
	return err
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if _, ok := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]; !ok {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	if _, ok := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]; !ok {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

// checkRangeStream refuses what can not be streamed in key order (RS-9).
func checkRangeStream(r *pb.RangeRequest) error {
	if err := checkRange(r); err != nil {
		return err
	}
	switch {
	case r.SortOrder == pb.RangeRequest_DESCEND,
		r.SortOrder == pb.RangeRequest_ASCEND && r.SortTarget != pb.RangeRequest_KEY:
		return errStreamOrder
	case hasBounds(r):
		return errStreamBounds
	}
	return nil
}

func hasBounds(r *pb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 ||
		r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}
