package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// userPassword is a user's name and password.
type userPassword struct{ name, password string }

func userValue(p *userPassword) pflag.Value {
	return &value[userPassword]{p, "user", "name:password, of a user of the server",
		func(s string) (userPassword, error) {
			name, password, ok := strings.Cut(s, ":")
			if !ok || name == "" {
				return userPassword{}, errNotValid
			}
			return userPassword{name, password}, nil
		},
		func(u userPassword) string { return u.name }} // never the password
}

// login returns ctx with a token for the user, if one is set and the server has users.
func (o *clientOptions) login(ctx context.Context, c *client) (context.Context, error) {
	if o.user.name == "" {
		return ctx, nil
	}
	resp, err := etcdserverpb.NewAuthClient(c).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: o.user.name, Password: o.user.password})
	switch {
	case isStatus(err, rpctypes.ErrGRPCAuthNotEnabled):
		return ctx, nil
	case isStatus(err, rpctypes.ErrGRPCAuthFailed):
		return nil, fmt.Errorf("the server does not accept the password of user %q, or has no such user (--user)", o.user.name)
	case err != nil:
		return nil, fmt.Errorf("log in as %q: %w", o.user.name, err)
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, resp.Token), nil
}

// isStatus tells whether err is one of the API's errors.
func isStatus(err, want error) bool {
	var api interface{ GRPCStatus() *grpcstatus.Status }
	if !errors.As(err, &api) {
		return false
	}
	got := grpcstatus.Convert(want)
	return api.GRPCStatus().Code() == got.Code() && api.GRPCStatus().Message() == got.Message()
}
