package etcdapi

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

// Clients look errors up by their exact text and decide on a retry by their
// code, so both are etcd's wherever etcd has one.
var (
	errStopped                 = rpctypes.ErrGRPCStopped
	errInvalidClientAPIVersion = rpctypes.ErrGRPCInvalidClientAPIVersion

	errUnknownCompare = status.Error(codes.InvalidArgument, "etcdserver: unknown target or result in compare")
	errStreamOrder    = status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	errStreamBounds   = status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
)

// storeErrors are the store's errors and what a client gets for them.
var storeErrors = []struct{ is, status error }{
	{store.ErrCompacted, rpctypes.ErrGRPCCompacted},
	{store.ErrFutureRev, rpctypes.ErrGRPCFutureRev},
	{store.ErrKeyNotFound, rpctypes.ErrGRPCKeyNotFound},
	{store.ErrLeaseNotFound, rpctypes.ErrGRPCLeaseNotFound},
	{store.ErrLeaseExists, rpctypes.ErrGRPCLeaseExist},
	{store.ErrLeaseTTLTooLarge, rpctypes.ErrGRPCLeaseTTLTooLarge},
	{store.ErrNoSpace, rpctypes.ErrGRPCNoSpace},
	{store.ErrCorrupt, rpctypes.ErrGRPCCorrupt},
	{store.ErrStopped, errStopped},
}

// toStatus turns an error of the store or of a context into the status that a
// client gets. A status stays as it is. Everything unknown becomes UNAVAILABLE:
// it is the one code after which clients try a read or a watch again (ERR-1,
// ERR-2), and nothing a client did wrong is unknown here.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, e := range slices.Concat(storeErrors, authErrors) {
		if errors.Is(err, e.is) {
			return e.status
		}
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unavailable, "etcdserver: "+err.Error())
}
