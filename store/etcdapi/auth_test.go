package etcdapi

import (
	"context"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
)

const (
	textNoUser = "etcdserver: user name not found"
	textNoRole = "etcdserver: role name not found"
	textMgmt   = "etcdserver: invalid auth management"
)

func TestAuthIsOff(t *testing.T) {
	a := newAdminTest(t, Config{BcryptCost: MinBcryptCost})
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
	t.Run("AUT-1", func(t *testing.T) {
		if _, err := a.kv.Put(withToken(a.ctx, "nonsense"), &pb.PutRequest{Key: []byte("a")}); err != nil {
			t.Error(err)
		}
	})
	t.Run("AUT-3", func(t *testing.T) {
		_, err := a.auth.Authenticate(a.ctx, &pb.AuthenticateRequest{Name: "u", Password: "p"})
		wantStatus(t, err, codes.FailedPrecondition, "etcdserver: authentication is not enabled")
	})
	enable := func() error { _, err := a.auth.AuthEnable(a.ctx, &pb.AuthEnableRequest{}); return err }
	t.Run("AUT-5", func(t *testing.T) {
		wantStatus(t, enable(), codes.FailedPrecondition, "etcdserver: root user does not exist")
		if _, err := a.auth.UserAdd(a.ctx, &pb.AuthUserAddRequest{Name: "root", Password: "x"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, enable(), codes.FailedPrecondition, "etcdserver: root user does not have root role")
	})
	t.Run("AUT-6", func(t *testing.T) {
		users, err := a.auth.UserList(a.ctx, &pb.AuthUserListRequest{})
		if err != nil || !slices.Equal(users.Users, []string{"root"}) {
			t.Errorf("%v, %v", users, err)
		}
		roles, err := a.auth.RoleList(a.ctx, &pb.AuthRoleListRequest{})
		if err != nil || len(roles.Roles) != 0 {
			t.Errorf("%v, %v", roles, err)
		}
	})
}

// The errors of management, with root's rights while access control is on.
func TestAuthManagementErrors(t *testing.T) {
	a := newAuthTest(t, Config{})
	root := a.as("root")
	const pre, arg = codes.FailedPrecondition, codes.InvalidArgument
	long := strings.Repeat("x", 73)
	for _, c := range []struct {
		name string
		call func() error
		code codes.Code
		text string
	}{
		{"UserAdd empty", func() error { _, err := a.auth.UserAdd(root, &pb.AuthUserAddRequest{}); return err }, arg, textNobody},
		{"UserAdd again", func() error { _, err := a.auth.UserAdd(root, &pb.AuthUserAddRequest{Name: "u"}); return err }, pre, "etcdserver: user name already exists"},
		{"UserAdd long password", func() error {
			_, err := a.auth.UserAdd(root, &pb.AuthUserAddRequest{Name: "l", Password: long})
			return err
		}, codes.Unknown, "bcrypt: password length exceeds 72 bytes"},
		{"UserGet", func() error { _, err := a.auth.UserGet(root, &pb.AuthUserGetRequest{Name: "x"}); return err }, pre, textNoUser},
		{"UserDelete", func() error { _, err := a.auth.UserDelete(root, &pb.AuthUserDeleteRequest{Name: "x"}); return err }, pre, textNoUser},
		{"UserDelete root", func() error { _, err := a.auth.UserDelete(root, &pb.AuthUserDeleteRequest{Name: "root"}); return err }, arg, textMgmt},
		{"UserChangePassword", func() error {
			_, err := a.auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "x", Password: "p"})
			return err
		}, pre, textNoUser},
		{"AUT-18", func() error {
			_, err := a.auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "u", HashedPassword: "%"})
			return err
		}, codes.Unknown, "auth: authentication failed, password was given for no password user"},
		{"UserGrantRole", func() error {
			_, err := a.auth.UserGrantRole(root, &pb.AuthUserGrantRoleRequest{User: "x", Role: "r"})
			return err
		}, pre, textNoUser},
		{"UserGrantRole role", func() error {
			_, err := a.auth.UserGrantRole(root, &pb.AuthUserGrantRoleRequest{User: "u", Role: "x"})
			return err
		}, pre, textNoRole},
		{"UserRevokeRole", func() error {
			_, err := a.auth.UserRevokeRole(root, &pb.AuthUserRevokeRoleRequest{Name: "u", Role: "x"})
			return err
		}, pre, "etcdserver: role is not granted to the user"},
		{"UserRevokeRole root", func() error {
			_, err := a.auth.UserRevokeRole(root, &pb.AuthUserRevokeRoleRequest{Name: "root", Role: "root"})
			return err
		}, arg, textMgmt},
		{"RoleAdd empty", func() error { _, err := a.auth.RoleAdd(root, &pb.AuthRoleAddRequest{}); return err }, arg, "etcdserver: role name is empty"},
		{"RoleAdd again", func() error { _, err := a.auth.RoleAdd(root, &pb.AuthRoleAddRequest{Name: "r"}); return err }, pre, "etcdserver: role name already exists"},
		{"RoleGet", func() error { _, err := a.auth.RoleGet(root, &pb.AuthRoleGetRequest{Role: "x"}); return err }, pre, textNoRole},
		{"RoleDelete", func() error { _, err := a.auth.RoleDelete(root, &pb.AuthRoleDeleteRequest{Role: "x"}); return err }, pre, textNoRole},
		{"RoleGrantPermission none", func() error {
			_, err := a.auth.RoleGrantPermission(root, &pb.AuthRoleGrantPermissionRequest{Name: "r"})
			return err
		}, arg, "etcdserver: permission not given"},
		{"RoleGrantPermission empty", func() error {
			_, err := a.auth.RoleGrantPermission(root, &pb.AuthRoleGrantPermissionRequest{Name: "r", Perm: &authpb.Permission{}})
			return err
		}, arg, textMgmt},
		{"RoleRevokePermission", func() error {
			_, err := a.auth.RoleRevokePermission(root, &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("k")})
			return err
		}, pre, "etcdserver: permission is not granted to the role"},
		{"GRPC-3", func() error {
			_, err := a.auth.RoleAdd(root, &pb.AuthRoleAddRequest{Name: strings.Repeat("x", 1_572_860)})
			return err
		}, arg, "etcdserver: request is too large"},
	} {
		t.Run(c.name, func(t *testing.T) { wantStatus(t, c.call(), c.code, c.text) })
	}
	// What is asked before a request is looked at: whether the sender may ask at all.
	t.Run("AUT-17", func(t *testing.T) {
		u := a.as("u")
		_, err := a.auth.RoleGrantPermission(u, &pb.AuthRoleGrantPermissionRequest{Name: "r"})
		wantStatus(t, err, codes.PermissionDenied, textDenied)
		_, err = a.auth.UserAdd(u, &pb.AuthUserAddRequest{Name: "n", Password: long})
		wantStatus(t, err, codes.PermissionDenied, textDenied)
		_, err = a.maint.Defragment(u, &pb.DefragmentRequest{})
		wantStatus(t, err, codes.PermissionDenied, textDenied)
		stream, err := a.maint.Snapshot(u, &pb.SnapshotRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		t.Run("SNP-6", func(t *testing.T) { wantStatus(t, err, codes.PermissionDenied, textDenied) })
	})
}

func TestAuthenticate(t *testing.T) {
	a := newAuthTest(t, Config{})
	root := a.as("root")
	if _, err := a.auth.UserAdd(root, &pb.AuthUserAddRequest{Name: "n", Options: &authpb.UserAddOptions{NoPassword: true}}); err != nil {
		t.Fatal(err)
	}
	t.Run("AUT-11", func(t *testing.T) {
		for _, c := range [][2]string{{"u", "wrong"}, {"u", ""}, {"unknown", "x"}, {"", ""}} {
			_, err := a.login(c[0], c[1])
			wantStatus(t, err, codes.InvalidArgument, textFailed)
		}
		_, err := a.login("n", "")
		wantStatus(t, err, codes.Unknown, "auth: authentication failed, password was given for no password user")
	})
	t.Run("AUT-18", func(t *testing.T) {
		hash, err := bcrypt.GenerateFromPassword([]byte("chosen"), MinBcryptCost)
		if err != nil {
			t.Fatal(err)
		}
		text := base64.StdEncoding.EncodeToString(hash)
		// What a client sends as a hash counts when it changes a password, not when it adds a user.
		if _, err := a.auth.UserAdd(root, &pb.AuthUserAddRequest{Name: "h", Password: "own", HashedPassword: text}); err != nil {
			t.Fatal(err)
		}
		_, err = a.login("h", "chosen")
		wantStatus(t, err, codes.InvalidArgument, textFailed)
		if _, err := a.auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "h", HashedPassword: text}); err != nil {
			t.Fatal(err)
		}
		_, err = a.login("h", "chosen")
		wantStatus(t, err, codes.OK, "")
		if cost, err := bcrypt.Cost(a.s.store.Auth().User("u").Password); err != nil || cost != MinBcryptCost {
			t.Errorf("cost %d, %v", cost, err)
		}
	})
}

// Somebody unknown costs as much as a wrong password: there is a hash to compare with.
func TestUnknownUserCostsTheSame(t *testing.T) {
	p := newPasswords(MinBcryptCost + 1)
	ok, err := p.fits(context.Background(), nil, "x")
	if cost, costErr := bcrypt.Cost(p.decoy); ok || err != nil || costErr != nil || cost != MinBcryptCost+1 {
		t.Errorf("AUT-11: %v, %v, cost %d, %v", ok, err, cost, costErr)
	}
	t.Run("gives up with the client", func(t *testing.T) {
		for range cap(p.slots) {
			p.slots <- struct{}{}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := p.fits(ctx, nil, "x")
		wantStatus(t, err, codes.Canceled, "context canceled")
	})
}

// A password that is changed while somebody logs in with the old one leaves no token behind.
func TestLoginAndPasswordChange(t *testing.T) {
	a := newAuthTest(t, Config{})
	root := a.as("root")
	passwords := []string{"u-pw", "other"}
	for round := range 20 {
		from, to := passwords[round%2], passwords[(round+1)%2]
		var logins sync.WaitGroup
		tokens := make(chan string, 100)
		stop := make(chan struct{})
		for range 3 {
			logins.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if token, err := a.login("u", from); err == nil {
						tokens <- token
					}
				}
			})
		}
		_, err := a.auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "u", Password: to})
		close(stop)
		go func() { logins.Wait(); close(tokens) }()
		if err != nil {
			t.Fatal(err)
		}
		for token := range tokens {
			wantStatus(t, a.get(withToken(a.ctx, token), "a"), codes.Unauthenticated, textBadToken)
		}
	}
}

func TestSecretsAreNotLogged(t *testing.T) {
	log := new(logBuffer)
	a := newAuthTest(t, Config{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	token := a.token("root")
	root := withToken(a.ctx, token)
	if _, err := a.auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "u", Password: "new-secret"}); err != nil {
		t.Fatal(err)
	}
	_, _ = a.login(strings.Repeat("long", 1000), "guess")
	_, _ = a.login("u", "guess")
	_ = a.get(withToken(a.ctx, "stolen.1"), "a")
	text := log.String()
	for _, want := range []string{"added a user", "changed the password", "a login failed", "by=root"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	hash := string(a.s.store.Auth().User("u").Password)
	for _, secret := range []string{"root-pw", "u-pw", "new-secret", "guess", "stolen", hash, base64.StdEncoding.EncodeToString([]byte(hash))} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if hasToken(text, token) {
		t.Error("the log has a token")
	}
	if strings.Contains(text, strings.Repeat("long", 100)) {
		t.Error("a stranger fills the log")
	}
}
