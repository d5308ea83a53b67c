package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
)

// Put is a transaction of one put.
func (k *kvService) Put(ctx context.Context, req *pb.PutRequest) (raw, error) {
	if err := checkPut(req); err != nil {
		return nil, k.s.malformed(err, store.PutCost(req.Key, req.Value))
	}
	if err := k.s.checkSize(req); err != nil {
		return nil, err
	}
	put := [1]store.Op{{Put: putRequest(req)}}
	return k.s.write(ctx, &store.TxnRequest{Success: put[:]}, func(dst []byte, res *store.TxnResult) ([]byte, error) {
		return appendPut(k.s.store, dst, k.s.head(res.Revision), &res.Results[0])
	})
}
