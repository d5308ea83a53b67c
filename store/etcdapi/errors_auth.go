package etcdapi

import (
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store/auth"
)

// authErrors are the errors of users and roles and what a client gets for them.
var authErrors = []struct{ is, status error }{
	{auth.ErrUserEmpty, rpctypes.ErrGRPCUserEmpty},
	{auth.ErrPermissionDenied, rpctypes.ErrGRPCPermissionDenied},
	{auth.ErrOldRevision, rpctypes.ErrGRPCAuthOldRevision},
	{auth.ErrRootUserMissing, rpctypes.ErrGRPCRootUserNotExist},
	{auth.ErrRootRoleMissing, rpctypes.ErrGRPCRootRoleNotExist},
	{auth.ErrUserExists, rpctypes.ErrGRPCUserAlreadyExist},
	{auth.ErrUserNotFound, rpctypes.ErrGRPCUserNotFound},
	{auth.ErrRoleEmpty, rpctypes.ErrGRPCRoleEmpty},
	{auth.ErrRoleExists, rpctypes.ErrGRPCRoleAlreadyExist},
	{auth.ErrRoleNotFound, rpctypes.ErrGRPCRoleNotFound},
	{auth.ErrRoleNotGranted, rpctypes.ErrGRPCRoleNotGranted},
	{auth.ErrPermissionNotGranted, rpctypes.ErrGRPCPermissionNotGranted},
	{auth.ErrInvalidManagement, rpctypes.ErrGRPCInvalidAuthMgmt},
}

// errNoPassword is for a user who comes with a certificate only (AUT-11).
var errNoPassword = status.Error(codes.Unknown, "auth: authentication failed, password was given for no password user")
