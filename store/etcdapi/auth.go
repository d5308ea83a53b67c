package etcdapi

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// freshAuthRevision is etcd's for a store in which authentication was never
// configured.
const freshAuthRevision = 1

// authService is etcdserverpb.Auth of a server without users and roles: who may
// connect may do everything, and who may connect is decided by client
// certificates or by the permissions of a socket. It answers as etcd does while
// authentication is off and nobody was added (AUT-2 to AUT-6); adding somebody is
// refused.
type authService struct {
	etcdserverpb.UnimplementedAuthServer
	s *Server
}

func (a authService) AuthStatus(context.Context, *etcdserverpb.AuthStatusRequest) (*etcdserverpb.AuthStatusResponse, error) {
	return &etcdserverpb.AuthStatusResponse{Header: a.s.currentHeader(), AuthRevision: freshAuthRevision}, nil
}

// AuthEnable is refused: it needs a user root first.
func (authService) AuthEnable(context.Context, *etcdserverpb.AuthEnableRequest) (*etcdserverpb.AuthEnableResponse, error) {
	return nil, rpctypes.ErrGRPCRootUserNotExist
}

func (a authService) AuthDisable(context.Context, *etcdserverpb.AuthDisableRequest) (*etcdserverpb.AuthDisableResponse, error) {
	return &etcdserverpb.AuthDisableResponse{Header: a.s.currentHeader()}, nil
}

// Authenticate tells a client that has a password to go on without a token.
func (authService) Authenticate(context.Context, *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthNotEnabled
}

func (authService) UserAdd(_ context.Context, r *etcdserverpb.AuthUserAddRequest) (*etcdserverpb.AuthUserAddResponse, error) {
	if r.Name == "" {
		return nil, rpctypes.ErrGRPCUserEmpty
	}
	return nil, errNoUsers
}

func (authService) UserGet(context.Context, *etcdserverpb.AuthUserGetRequest) (*etcdserverpb.AuthUserGetResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (a authService) UserList(context.Context, *etcdserverpb.AuthUserListRequest) (*etcdserverpb.AuthUserListResponse, error) {
	return &etcdserverpb.AuthUserListResponse{Header: a.s.currentHeader()}, nil
}

func (authService) UserDelete(context.Context, *etcdserverpb.AuthUserDeleteRequest) (*etcdserverpb.AuthUserDeleteResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (authService) UserChangePassword(context.Context, *etcdserverpb.AuthUserChangePasswordRequest) (*etcdserverpb.AuthUserChangePasswordResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (authService) UserGrantRole(context.Context, *etcdserverpb.AuthUserGrantRoleRequest) (*etcdserverpb.AuthUserGrantRoleResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (authService) UserRevokeRole(context.Context, *etcdserverpb.AuthUserRevokeRoleRequest) (*etcdserverpb.AuthUserRevokeRoleResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

func (authService) RoleAdd(_ context.Context, r *etcdserverpb.AuthRoleAddRequest) (*etcdserverpb.AuthRoleAddResponse, error) {
	if r.Name == "" {
		return nil, rpctypes.ErrGRPCRoleEmpty
	}
	return nil, errNoUsers
}

func (authService) RoleGet(context.Context, *etcdserverpb.AuthRoleGetRequest) (*etcdserverpb.AuthRoleGetResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}

func (a authService) RoleList(context.Context, *etcdserverpb.AuthRoleListRequest) (*etcdserverpb.AuthRoleListResponse, error) {
	return &etcdserverpb.AuthRoleListResponse{Header: a.s.currentHeader()}, nil
}

func (authService) RoleDelete(context.Context, *etcdserverpb.AuthRoleDeleteRequest) (*etcdserverpb.AuthRoleDeleteResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}

func (authService) RoleGrantPermission(_ context.Context, r *etcdserverpb.AuthRoleGrantPermissionRequest) (*etcdserverpb.AuthRoleGrantPermissionResponse, error) {
	if r.Perm == nil {
		return nil, rpctypes.ErrGRPCPermissionNotGiven
	}
	return nil, rpctypes.ErrGRPCRoleNotFound
}

func (authService) RoleRevokePermission(context.Context, *etcdserverpb.AuthRoleRevokePermissionRequest) (*etcdserverpb.AuthRoleRevokePermissionResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}
