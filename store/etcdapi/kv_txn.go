package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
)

// Txn answers when the transaction is durable.
func (k *kvService) Txn(ctx context.Context, req *pb.TxnRequest) (raw, error) {
	if err := checkTxn(req, k.s.cfg.MaxTxnOps); err != nil {
		return nil, k.s.malformed(err, txnRequest(req).Cost())
	}
	if !readOnly(req) {
		if err := k.s.checkSize(req); err != nil {
			return nil, err
		}
	}
	return k.s.write(ctx, txnRequest(req), func(dst []byte, res *store.TxnResult) ([]byte, error) {
		return appendTxn(k.s.store, dst, k.s.head(res.Revision), res)
	})
}

// write executes a transaction and encodes the answer in one buffer. A large
// answer waits for the list budget; the transaction is done by then.
func (s *Server) write(ctx context.Context, req *store.TxnRequest, encode func([]byte, *store.TxnResult) ([]byte, error)) (raw, error) {
	res, err := s.store.Txn(ctx, req)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	size := txnSize(res)
	g, err := s.reserve(ctx, int64(size))
	if err != nil {
		return nil, err
	}
	buf, pool := g.allocate(size)
	out, err := encode(*buf, res)
	if err != nil {
		g.settle(0)
		if pool != nil {
			pool.Put(buf)
		}
		return nil, err
	}
	*buf = out
	g.settle(int64(len(out)))
	answer := raw{g.buffer(buf, pool)}
	if g == nil {
		return answer, nil
	}
	return answer.afterwards(whenSent(ctx, g.abandon)), nil
}
