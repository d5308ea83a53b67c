package etcdapi

import (
	"context"
	"encoding/base64"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store/auth"
)

// attempt runs a change on the state of now without making it: what would fail
// should do so before a password is hashed, which takes long. The change itself looks again.
func (a authService) attempt(ctx context.Context, plan func(*auth.State) (*auth.Update, error)) error {
	st := a.s.store.Auth()
	if err := st.Admin(auth.CallerOf(ctx)); err != nil {
		return toStatus(err)
	}
	_, err := plan(st)
	return toStatus(err)
}

func (a authService) UserAdd(ctx context.Context, r *pb.AuthUserAddRequest) (*pb.AuthUserAddResponse, error) {
	var hash []byte
	noPassword := r.Options.GetNoPassword()
	plan := func(st *auth.State) (*auth.Update, error) { return st.AddUser(r.Name, hash, noPassword) }
	if err := a.attempt(ctx, plan); err != nil {
		return nil, err
	}
	if !noPassword {
		var err error
		if hash, err = a.s.passwords.hash(ctx, r.Password); err != nil {
			return nil, err
		}
	}
	header, err := a.change(ctx, r, "added a user", plan, "user", shortName(r.Name))
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserAddResponse{Header: header}, nil
}

func (a authService) UserGet(ctx context.Context, r *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	st := a.s.store.Auth()
	if err := st.UserVisible(auth.CallerOf(ctx), r.Name); err != nil {
		return nil, toStatus(err)
	}
	u := st.User(r.Name)
	if u == nil {
		return nil, toStatus(auth.ErrUserNotFound)
	}
	return &pb.AuthUserGetResponse{Header: a.s.currentHeader(), Roles: u.Roles}, nil
}

func (a authService) UserList(ctx context.Context, _ *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	st := a.s.store.Auth()
	if err := st.Admin(auth.CallerOf(ctx)); err != nil {
		return nil, toStatus(err)
	}
	return &pb.AuthUserListResponse{Header: a.s.currentHeader(), Users: st.Users()}, nil
}

func (a authService) UserDelete(ctx context.Context, r *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	plan := func(st *auth.State) (*auth.Update, error) { return st.DeleteUser(r.Name) }
	header, err := a.change(ctx, r, "deleted a user", plan, "user", shortName(r.Name))
	if err != nil {
		return nil, err
	}
	a.s.tokens.dropUser(r.Name)
	return &pb.AuthUserDeleteResponse{Header: header}, nil
}

// UserChangePassword without a password takes bcrypt's text in base64 (AUT-18).
func (a authService) UserChangePassword(ctx context.Context, r *pb.AuthUserChangePasswordRequest) (*pb.AuthUserChangePasswordResponse, error) {
	var hash []byte
	plan := func(st *auth.State) (*auth.Update, error) { return st.SetPassword(r.Name, hash) }
	if err := a.attempt(ctx, plan); err != nil {
		return nil, err
	}
	var err error
	if r.Password != "" {
		if hash, err = a.s.passwords.hash(ctx, r.Password); err != nil {
			return nil, err
		}
	} else if hash, err = base64.StdEncoding.DecodeString(r.HashedPassword); err != nil {
		return nil, errNoPassword
	}
	header, err := a.change(ctx, r, "changed the password of a user", plan, "user", shortName(r.Name))
	if err != nil {
		return nil, err
	}
	a.s.tokens.dropUser(r.Name)
	return &pb.AuthUserChangePasswordResponse{Header: header}, nil
}

func (a authService) UserGrantRole(ctx context.Context, r *pb.AuthUserGrantRoleRequest) (*pb.AuthUserGrantRoleResponse, error) {
	plan := func(st *auth.State) (*auth.Update, error) { return st.GrantRole(r.User, r.Role) }
	header, err := a.change(ctx, r, "granted a role to a user", plan, "user", shortName(r.User), "role", shortName(r.Role))
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserGrantRoleResponse{Header: header}, nil
}

func (a authService) UserRevokeRole(ctx context.Context, r *pb.AuthUserRevokeRoleRequest) (*pb.AuthUserRevokeRoleResponse, error) {
	plan := func(st *auth.State) (*auth.Update, error) { return st.RevokeRole(r.Name, r.Role) }
	header, err := a.change(ctx, r, "revoked a role from a user", plan, "user", shortName(r.Name), "role", shortName(r.Role))
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserRevokeRoleResponse{Header: header}, nil
}
