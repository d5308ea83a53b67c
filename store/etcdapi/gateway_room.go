package etcdapi

import (
	"context"
	"net/http"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
)

const (
	// jsonCopies is how often an answer is in memory while the gateway makes JSON of it: as gRPC's
	// message, decoded, and as a text that grows. 40 MB took 340 MB.
	jsonCopies = 8
	// jsonStart and jsonRate are how long a client may take for a large answer: a while,
	// and what is left at that many bytes a second.
	jsonStart = 30 * time.Second
	jsonRate  = 1 << 20
)

// room waits until the answer to a request may be in memory, if it can be large. leave must be called when the
// answer is written; the client has until then only as long as it needs at a slow pace, since others wait.
// It returns ctx's error if ctx ends before.
func (g *gateway) room(ctx context.Context, w http.ResponseWriter, req proto.Message) (leave func(), err error) {
	size := g.s.answerSize(ctx, req)
	if size < smallRead {
		return func() {}, nil
	}
	held, err := g.budget.acquire(ctx, jsonCopies*size)
	if err != nil {
		return nil, err
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(jsonStart + time.Duration(size)*time.Second/jsonRate))
	return func() {
		_ = control.SetWriteDeadline(time.Time{})
		g.budget.release(held)
	}, nil
}

// answerSize is about the size of the KeyValues in the answer to a request, in bytes. 0 for
// those that are refused.
func (s *Server) answerSize(ctx context.Context, req proto.Message) int64 {
	switch r := req.(type) {
	case *pb.RangeRequest:
		if r.CountOnly {
			return 0
		}
		return s.rangeBytes(ctx, r)
	case *pb.DeleteRangeRequest:
		if !r.PrevKv {
			return 0
		}
		return s.rangeBytes(ctx, &pb.RangeRequest{Key: r.Key, RangeEnd: r.RangeEnd})
	case *pb.TxnRequest:
		return max(s.opsBytes(ctx, r.Success), s.opsBytes(ctx, r.Failure))
	}
	return 0
}

func (s *Server) opsBytes(ctx context.Context, ops []*pb.RequestOp) (n int64) {
	for _, op := range ops {
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			n += s.answerSize(ctx, r.RequestRange)
		case *pb.RequestOp_RequestDeleteRange:
			n += s.answerSize(ctx, r.RequestDeleteRange)
		case *pb.RequestOp_RequestTxn:
			n += s.answerSize(ctx, r.RequestTxn)
		}
	}
	return n
}

// rangeBytes does not ask whether the client may read the range: it only makes it wait.
func (s *Server) rangeBytes(ctx context.Context, r *pb.RangeRequest) int64 {
	reader, err := s.store.NewReader(ctx, r.Revision)
	if err != nil {
		return 0
	}
	defer reader.Close()
	keys := store.KeyRange{Key: r.Key, End: r.RangeEnd}
	size := reader.Bytes(keys)
	if count := reader.Count(keys); r.Limit > 0 && r.Limit < count {
		size = int64(float64(size) / float64(count) * float64(r.Limit))
	}
	return size
}
