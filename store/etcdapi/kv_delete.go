package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
)

// DeleteRange is a transaction of one delete.
func (k *kvService) DeleteRange(ctx context.Context, req *pb.DeleteRangeRequest) (raw, error) {
	if err := checkDelete(req); err != nil {
		return nil, err
	}
	if err := k.s.checkSize(req); err != nil {
		return nil, err
	}
	del := [1]store.Op{{Delete: deleteRequest(req)}}
	return k.s.write(ctx, &store.TxnRequest{Success: del[:]}, func(dst []byte, res *store.TxnResult) ([]byte, error) {
		return appendDelete(k.s.store, dst, k.s.head(res.Revision), &res.Results[0])
	})
}
