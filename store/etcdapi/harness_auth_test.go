package etcdapi

import (
	"context"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// authTest is a server with access control: root, and u, who may read and write a to c and
// read r to s. Passwords are the names with "-pw" behind.
type authTest struct {
	*kvTest
	addr  string
	conn  *grpc.ClientConn
	auth  pb.AuthClient
	maint pb.MaintenanceClient
}

func newAuthTest(t *testing.T, cfg Config) *authTest {
	t.Helper()
	cfg.BcryptCost = MinBcryptCost
	s, addr := startServer(t, cfg)
	a := connectAuth(t, s, addr, dial(t, addr))
	a.enable()
	return a
}

func connectAuth(t *testing.T, s *Server, addr string, conn *grpc.ClientConn) *authTest {
	return &authTest{
		kvTest: &kvTest{T: t, ctx: testContext(t), s: s,
			kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn), lease: pb.NewLeaseClient(conn)},
		addr: addr, conn: conn, auth: pb.NewAuthClient(conn), maint: pb.NewMaintenanceClient(conn),
	}
}

func (a *authTest) enable() {
	a.Helper()
	a.addUser(a.ctx, "root")
	a.addUser(a.ctx, "u")
	a.role(a.ctx, "r")
	a.grant(a.ctx, "root", "root")
	a.grant(a.ctx, "u", "r")
	a.permit(a.ctx, "r", authpb.READWRITE, "a", "c")
	a.permit(a.ctx, "r", authpb.READ, "r", "s")
	if _, err := a.auth.AuthEnable(a.ctx, &pb.AuthEnableRequest{}); err != nil {
		a.Fatal(err)
	}
}

func (a *authTest) addUser(ctx context.Context, name string) {
	a.Helper()
	if _, err := a.auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Password: name + "-pw"}); err != nil {
		a.Fatal(err)
	}
}

func (a *authTest) role(ctx context.Context, name string) {
	a.Helper()
	if _, err := a.auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name}); err != nil {
		a.Fatal(err)
	}
}

func (a *authTest) grant(ctx context.Context, user, role string) {
	a.Helper()
	if _, err := a.auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: user, Role: role}); err != nil {
		a.Fatal(err)
	}
}

func (a *authTest) permit(ctx context.Context, role string, kind authpb.Permission_Type, key, end string) {
	a.Helper()
	req := &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: &authpb.Permission{PermType: kind, Key: []byte(key), RangeEnd: []byte(end)}}
	if _, err := a.auth.RoleGrantPermission(ctx, req); err != nil {
		a.Fatal(err)
	}
}

func (a *authTest) login(user, password string) (token string, err error) {
	resp, err := a.auth.Authenticate(a.ctx, &pb.AuthenticateRequest{Name: user, Password: password})
	return resp.GetToken(), err
}

// token is a new token of a user.
func (a *authTest) token(user string) string {
	a.Helper()
	token, err := a.login(user, user+"-pw")
	if err != nil {
		a.Fatal(err)
	}
	return token
}

func withToken(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "token", token)
}

// as is a context with a new token of a user.
func (a *authTest) as(user string) context.Context {
	a.Helper()
	return withToken(a.ctx, a.token(user))
}

func (a *authTest) get(ctx context.Context, key string) error {
	_, err := a.kv.Range(ctx, &pb.RangeRequest{Key: []byte(key)})
	return err
}

const (
	textDenied   = "etcdserver: permission denied"
	textNobody   = "etcdserver: user name is empty"
	textBadToken = "etcdserver: invalid auth token"
	textOld      = "etcdserver: revision of auth store is old"
	textFailed   = "etcdserver: authentication failed, invalid user ID or password"
)

func hasToken(text, token string) bool {
	return strings.Contains(text, strings.SplitN(token, ".", 2)[0])
}
