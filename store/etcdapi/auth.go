package etcdapi

import (
	"context"
	"log/slog"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store/auth"
)

// authService is etcdserverpb.Auth. Its log lines name users and never hold a
// password or a token.
type authService struct {
	pb.UnimplementedAuthServer
	s *Server
}

// change makes a change durable and logs it. The header is from after it.
func (a authService) change(ctx context.Context, req proto.Message, what string, plan func(*auth.State) (*auth.Update, error), names ...any) (*pb.ResponseHeader, error) {
	if err := a.s.checkSize(req); err != nil {
		return nil, err
	}
	if err := a.s.store.ChangeAuth(ctx, plan); err != nil {
		return nil, toStatus(err)
	}
	a.s.log.Info("users and roles: "+what, append(names, "by", shortName(auth.CallerOf(ctx).User))...)
	return a.s.currentHeader(), nil
}

// shortName is a name for the log: it bounds what strangers can put there.
type shortName string

const maxLogName = 128

// LogValue implements slog.LogValuer.
func (n shortName) LogValue() slog.Value {
	if len(n) > maxLogName {
		n = n[:maxLogName] + "…"
	}
	return slog.StringValue(strings.ToValidUTF8(string(n), "�"))
}

// AuthStatus answers everybody (AUT-2, AUT-10).
func (a authService) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	st := a.s.store.Auth()
	return &pb.AuthStatusResponse{Header: a.s.currentHeader(), Enabled: st.Enabled(), AuthRevision: st.Revision()}, nil
}

// AuthEnable switches access control on; tokens are dropped with AuthDisable, so there are none.
func (a authService) AuthEnable(ctx context.Context, r *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	header, err := a.change(ctx, r, "access control is on", (*auth.State).Enable)
	if err != nil {
		return nil, err
	}
	a.s.warnUnusedNames()
	return &pb.AuthEnableResponse{Header: header}, nil
}

func (a authService) AuthDisable(ctx context.Context, r *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	header, err := a.change(ctx, r, "access control is off", (*auth.State).Disable)
	if err != nil {
		return nil, err
	}
	a.s.tokens.dropAll()
	return &pb.AuthDisableResponse{Header: header}, nil
}

// Authenticate gives a token for a password (AUT-3, AUT-11).
func (a authService) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	for {
		st := a.s.store.Auth()
		if err := a.checkPassword(ctx, st, r); err != nil {
			return nil, err
		}
		token, err := a.s.tokens.assign(r.Name, st.Revision(), a.s.store.Status().Index)
		if err != nil {
			return nil, status.Error(codes.Unknown, "auth: "+err.Error())
		}
		// A change meanwhile may have been one of this password, and the tokens of the
		// user may have been dropped before this one was there.
		if a.s.store.Auth().Revision() == st.Revision() {
			return &pb.AuthenticateResponse{Header: a.s.currentHeader(), Token: token}, nil
		}
		a.s.tokens.drop(token)
	}
}

func (a authService) checkPassword(ctx context.Context, st *auth.State, r *pb.AuthenticateRequest) error {
	if !st.Enabled() {
		return rpctypes.ErrGRPCAuthNotEnabled
	}
	var hash []byte
	if u := st.User(r.Name); u != nil {
		if u.NoPassword {
			return errNoPassword
		}
		hash = u.Password
	}
	ok, err := a.s.passwords.fits(ctx, hash, r.Password)
	if err != nil {
		return err
	}
	if !ok {
		a.s.log.Warn("a login failed: unknown user or wrong password", "user", shortName(r.Name))
		return rpctypes.ErrGRPCAuthFailed
	}
	return nil
}
