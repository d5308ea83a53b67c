package etcdapi

import (
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

func TestAuthIsOff(t *testing.T) {
	a := newAdminTest(t, Config{})
	t.Run("AUT-2", func(t *testing.T) {
		resp, err := a.auth.AuthStatus(a.ctx, &pb.AuthStatusRequest{})
		if err != nil || resp.Enabled || resp.AuthRevision != 1 || resp.Header.Revision != 1 {
			t.Errorf("%v, %v", resp, err)
		}
	})
	t.Run("AUT-4", func(t *testing.T) {
		if _, err := a.auth.AuthDisable(a.ctx, &pb.AuthDisableRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("AUT-6", func(t *testing.T) {
		users, err := a.auth.UserList(a.ctx, &pb.AuthUserListRequest{})
		if err != nil || len(users.Users) != 0 {
			t.Errorf("%v, %v", users, err)
		}
		roles, err := a.auth.RoleList(a.ctx, &pb.AuthRoleListRequest{})
		if err != nil || len(roles.Roles) != 0 {
			t.Errorf("%v, %v", roles, err)
		}
	})
	const (
		pre    = codes.FailedPrecondition
		noUser = "etcdserver: user name not found"
		noRole = "etcdserver: role name not found"
	)
	for _, c := range []struct {
		name string
		call func() error
		code codes.Code
		text string
	}{
		{"AUT-3", func() error {
			_, err := a.auth.Authenticate(a.ctx, &pb.AuthenticateRequest{Name: "u", Password: "p"})
			return err
		}, pre, "etcdserver: authentication is not enabled"},
		{"AUT-5", func() error { _, err := a.auth.AuthEnable(a.ctx, &pb.AuthEnableRequest{}); return err }, pre, "etcdserver: root user does not exist"},
		{"UserAdd empty", func() error { _, err := a.auth.UserAdd(a.ctx, &pb.AuthUserAddRequest{}); return err }, codes.InvalidArgument, "etcdserver: user name is empty"},
		{"UserGet", func() error { _, err := a.auth.UserGet(a.ctx, &pb.AuthUserGetRequest{Name: "u"}); return err }, pre, noUser},
		{"UserDelete", func() error { _, err := a.auth.UserDelete(a.ctx, &pb.AuthUserDeleteRequest{Name: "u"}); return err }, pre, noUser},
		{"UserChangePassword", func() error {
			_, err := a.auth.UserChangePassword(a.ctx, &pb.AuthUserChangePasswordRequest{Name: "u", Password: "p"})
			return err
		}, pre, noUser},
		{"UserGrantRole", func() error {
			_, err := a.auth.UserGrantRole(a.ctx, &pb.AuthUserGrantRoleRequest{User: "u", Role: "r"})
			return err
		}, pre, noUser},
		{"UserRevokeRole", func() error {
			_, err := a.auth.UserRevokeRole(a.ctx, &pb.AuthUserRevokeRoleRequest{Name: "u", Role: "r"})
			return err
		}, pre, noUser},
		{"RoleAdd empty", func() error { _, err := a.auth.RoleAdd(a.ctx, &pb.AuthRoleAddRequest{}); return err }, codes.InvalidArgument, "etcdserver: role name is empty"},
		{"RoleGet", func() error { _, err := a.auth.RoleGet(a.ctx, &pb.AuthRoleGetRequest{Role: "r"}); return err }, pre, noRole},
		{"RoleDelete", func() error { _, err := a.auth.RoleDelete(a.ctx, &pb.AuthRoleDeleteRequest{Role: "r"}); return err }, pre, noRole},
		{"RoleGrantPermission none", func() error {
			_, err := a.auth.RoleGrantPermission(a.ctx, &pb.AuthRoleGrantPermissionRequest{Name: "r"})
			return err
		}, codes.InvalidArgument, "etcdserver: permission not given"},
		{"RoleGrantPermission", func() error {
			_, err := a.auth.RoleGrantPermission(a.ctx, &pb.AuthRoleGrantPermissionRequest{Name: "r", Perm: &authpb.Permission{Key: []byte("k")}})
			return err
		}, pre, noRole},
		{"RoleRevokePermission", func() error {
			_, err := a.auth.RoleRevokePermission(a.ctx, &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("k")})
			return err
		}, pre, noRole},
		{"UserAdd", func() error {
			_, err := a.auth.UserAdd(a.ctx, &pb.AuthUserAddRequest{Name: "root", Password: "p"})
			return err
		}, codes.Unimplemented, errNoUsersText},
		{"RoleAdd", func() error { _, err := a.auth.RoleAdd(a.ctx, &pb.AuthRoleAddRequest{Name: "root"}); return err }, codes.Unimplemented, errNoUsersText},
	} {
		t.Run(c.name, func(t *testing.T) { wantStatus(t, c.call(), c.code, c.text) })
	}
}

const errNoUsersText = "users and roles are not supported; let only holders of a client certificate connect, or use the permissions of a unix socket"
