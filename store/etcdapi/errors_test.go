package etcdapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

func TestToStatus(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code codes.Code
		text string
	}{
		{store.ErrCompacted, codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"},
		{store.ErrFutureRev, codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision"},
		{store.ErrKeyNotFound, codes.InvalidArgument, "etcdserver: key not found"},
		{store.ErrLeaseNotFound, codes.NotFound, "etcdserver: requested lease not found"},
		{store.ErrLeaseExists, codes.FailedPrecondition, "etcdserver: lease already exists"},
		{store.ErrLeaseTTLTooLarge, codes.OutOfRange, "etcdserver: too large lease TTL"},
		{store.ErrNoSpace, codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded"},
		{store.ErrCorrupt, codes.DataLoss, "etcdserver: corrupt cluster"},
		{store.ErrStopped, codes.Unavailable, "etcdserver: server stopped"},
		{fmt.Errorf("put: %w: quota", store.ErrNoSpace), codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded"},
		{context.Canceled, codes.Canceled, "context canceled"},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{errors.New("disk on fire"), codes.Unavailable, "etcdserver: disk on fire"},
		{status.Error(codes.Unimplemented, "as it is"), codes.Unimplemented, "as it is"},
	} {
		st, ok := status.FromError(toStatus(tt.err))
		if !ok || st.Code() != tt.code || st.Message() != tt.text {
			t.Errorf("toStatus(%v) = %v, want %v %q", tt.err, st, tt.code, tt.text)
		}
	}
	if toStatus(nil) != nil {
		t.Error("toStatus(nil) is an error")
	}
}
