package etcdapi

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors of the services other than KV and Watch that etcd has no exported value
// for. The others are used from rpctypes where they occur.
var (
	errUnknownAlarmAction = status.Error(codes.InvalidArgument, "etcdserver: unknown alarm action")
	errUnknownAlarmType   = status.Error(codes.InvalidArgument, "etcdserver: unknown alarm type")
	errUnknownMethod      = status.Error(codes.Unknown, "etcdserver: unknown method")
)
