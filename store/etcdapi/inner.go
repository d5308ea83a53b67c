package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// innerKV makes requests of the KV service from within the server, on behalf of a
// client. They take the same way as the client's own: so they have the same limits,
// and are allowed what the client is allowed at that moment.
type innerKV struct{ kv *kvService }

func (s *Server) inner() innerKV { return innerKV{&kvService{s: s}} }

func (k innerKV) txn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	ctx, err := k.kv.s.identified(ctx)
	if err != nil {
		return nil, err
	}
	out, err := k.kv.Txn(ctx, req)
	return decoded(out, err, new(pb.TxnResponse))
}

func (k innerKV) get(ctx context.Context, req *pb.RangeRequest) (*pb.RangeResponse, error) {
	ctx, err := k.kv.s.identified(ctx)
	if err != nil {
		return nil, err
	}
	out, err := k.kv.Range(ctx, req)
	return decoded(out, err, new(pb.RangeResponse))
}

func (k innerKV) delete(ctx context.Context, req *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	ctx, err := k.kv.s.identified(ctx)
	if err != nil {
		return nil, err
	}
	out, err := k.kv.DeleteRange(ctx, req)
	return decoded(out, err, new(pb.DeleteRangeResponse))
}

// grant makes a lease and returns its ID.
func (k innerKV) grant(ctx context.Context, ttl int64) (int64, error) {
	ctx, err := k.kv.s.identified(ctx)
	if err != nil {
		return 0, err
	}
	resp, err := leaseService{s: k.kv.s}.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: ttl})
	return resp.GetID(), err
}

func decoded[M proto.Message](out raw, err error, into M) (M, error) {
	if err != nil {
		var none M
		return none, err
	}
	buffers := mem.BufferSlice(out)
	defer buffers.Free()
	return into, codec{}.Unmarshal(buffers, into)
}

// createdAt is the condition that a key has a create revision; 0: does not exist.
func createdAt(key []byte, revision int64) []*pb.Compare {
	return []*pb.Compare{{Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision}}}
}

func thenRange(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func thenPut(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

func thenDelete(r *pb.DeleteRangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}}
}
