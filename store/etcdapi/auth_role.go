package etcdapi

import (
	"context"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/tarn-kv/tarn/store/auth"
)

func (a authService) RoleAdd(ctx context.Context, r *pb.AuthRoleAddRequest) (*pb.AuthRoleAddResponse, error) {
	plan := func(st *auth.State) (*auth.Update, error) { return st.AddRole(r.Name) }
	header, err := a.change(ctx, r, "added a role", plan, "role", shortName(r.Name))
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleAddResponse{Header: header}, nil
}

func (a authService) RoleGet(ctx context.Context, r *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	st := a.s.store.Auth()
	if err := st.RoleVisible(auth.CallerOf(ctx), r.Role); err != nil {
		return nil, toStatus(err)
	}
	permissions, err := st.RolePermissions(r.Role)
	if err != nil {
		return nil, toStatus(err)
	}
	resp := &pb.AuthRoleGetResponse{Header: a.s.currentHeader()}
	for _, p := range permissions {
		resp.Perm = append(resp.Perm, &authpb.Permission{
			PermType: authpb.Permission_Type(p.Kind), Key: []byte(p.Key), RangeEnd: []byte(p.End),
		})
	}
	return resp, nil
}

func (a authService) RoleList(ctx context.Context, _ *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	st := a.s.store.Auth()
	if err := st.Admin(auth.CallerOf(ctx)); err != nil {
		return nil, toStatus(err)
	}
	return &pb.AuthRoleListResponse{Header: a.s.currentHeader(), Roles: st.Roles()}, nil
}

func (a authService) RoleDelete(ctx context.Context, r *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	plan := func(st *auth.State) (*auth.Update, error) { return st.DeleteRole(r.Role) }
	header, err := a.change(ctx, r, "deleted a role", plan, "role", shortName(r.Role))
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleDeleteResponse{Header: header}, nil
}

func (a authService) RoleGrantPermission(ctx context.Context, r *pb.AuthRoleGrantPermissionRequest) (*pb.AuthRoleGrantPermissionResponse, error) {
	if r.Perm == nil {
		if err := a.s.requireAdmin(ctx); err != nil {
			return nil, err
		}
		return nil, rpctypes.ErrGRPCPermissionNotGiven
	}
	plan := func(st *auth.State) (*auth.Update, error) {
		return st.GrantPermission(r.Name, auth.Permission{
			Kind: auth.Kind(r.Perm.PermType), Key: string(r.Perm.Key), End: string(r.Perm.RangeEnd),
		})
	}
	header, err := a.change(ctx, r, "granted a permission to a role", plan, "role", shortName(r.Name),
		"kind", r.Perm.PermType.String(), "key", shortName(r.Perm.Key), "end", shortName(r.Perm.RangeEnd))
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleGrantPermissionResponse{Header: header}, nil
}

func (a authService) RoleRevokePermission(ctx context.Context, r *pb.AuthRoleRevokePermissionRequest) (*pb.AuthRoleRevokePermissionResponse, error) {
	plan := func(st *auth.State) (*auth.Update, error) {
		return st.RevokePermission(r.Role, string(r.Key), string(r.RangeEnd))
	}
	header, err := a.change(ctx, r, "revoked a permission from a role", plan,
		"role", shortName(r.Role), "key", shortName(r.Key), "end", shortName(r.RangeEnd))
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleRevokePermissionResponse{Header: header}, nil
}
