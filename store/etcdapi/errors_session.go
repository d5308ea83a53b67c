package etcdapi

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors of the Lock and Election services. etcd sends all of theirs as UNKNOWN.
var (
	errSessionExpired = status.Error(codes.Unknown, "mutex: session is expired")
	errNotLeader      = status.Error(codes.Unknown, "election: not leader")
	errNoLeader       = status.Error(codes.Unknown, "election: no leader")
	errMissingLeader  = status.Error(codes.Unknown, `"leader" field must be provided`)
)

// toSessionStatus is toStatus for the Lock and Election services: errors of the
// requests that they are made of keep their text and lose their code. What says
// that the caller is gone, or is to try again, keeps it.
func toSessionStatus(err error) error {
	st := status.Convert(toStatus(err))
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unknown:
		return st.Err()
	default:
		return status.Error(codes.Unknown, st.Message())
	}
}
