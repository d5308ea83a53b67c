package etcdapi

import (
	"regexp"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

func TestSimpleTokens(t *testing.T) {
	tokens := newSimpleTokens(time.Hour)
	assign := func(user string) string {
		token, err := tokens.assign(user, 1, 42)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	a, b, c := assign("u"), assign("u"), assign("v")
	t.Run("AUT-12/form", func(t *testing.T) {
		if !regexp.MustCompile(`^[a-zA-Z]{16}\.42$`).MatchString(a) || a == b {
			t.Errorf("tokens %q and %q", a, b)
		}
	})
	valid := func(token string) bool { _, ok := tokens.lookup(token, 7); return ok }
	t.Run("AUT-12/user", func(t *testing.T) {
		if c, ok := tokens.lookup(a, 7); !ok || c.User != "u" || c.Revision != 7 {
			t.Errorf("%+v, %v", c, ok)
		}
		for _, no := range []string{"", "x", a + "1", "." + a} {
			if valid(no) {
				t.Errorf("%q is valid", no)
			}
		}
	})
	t.Run("AUT-12/drop", func(t *testing.T) {
		tokens.drop(b)
		if valid(b) || !valid(a) {
			t.Error("the wrong one is gone")
		}
		tokens.dropUser("u")
		if valid(a) || !valid(c) {
			t.Error("the wrong user's are gone")
		}
		tokens.dropAll()
		if valid(c) || tokens.timer != nil {
			t.Error("something is left")
		}
	})
}

// Unused tokens go by themselves, one timer for all; a used one lives on.
func TestSimpleTokensExpire(t *testing.T) {
	tokens := newSimpleTokens(time.Hour)
	old, err := tokens.assign("u", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	used, err := tokens.assign("u", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	age := func(token string) { tokens.byText[token].Value.(*simpleToken).expiry = time.Now().Add(-time.Second) }
	age(old)
	if _, ok := tokens.lookup(old, 1); ok {
		t.Error("AUT-12: an expired token is valid until the timer comes")
	}
	if _, ok := tokens.lookup(used, 1); !ok {
		t.Error("AUT-12: a token that is in use is not valid")
	}
	tokens.expire()
	if len(tokens.byText) != 1 || tokens.byText[used] == nil || tokens.timer == nil {
		t.Errorf("AUT-12: left are %d tokens, timer %v", len(tokens.byText), tokens.timer != nil)
	}
	age(used)
	tokens.expire()
	if len(tokens.byText) != 0 || tokens.timer != nil {
		t.Errorf("AUT-12: left are %d tokens, timer %v", len(tokens.byText), tokens.timer != nil)
	}
	short := newSimpleTokens(time.Millisecond)
	if _, err := short.assign("u", 1, 1); err != nil {
		t.Fatal(err)
	}
	k := &kvTest{T: t, ctx: testContext(t)}
	k.until("the timer drops the token", func() bool {
		short.mu.Lock()
		defer short.mu.Unlock()
		return len(short.byText) == 0
	})
}

func TestAuthTokenSettings(t *testing.T) {
	for _, bad := range []string{"nonsense", "simple,ttl=3", "jwt", "jwt,sign-method=none", "jwt,sign-method=RS256",
		"jwt,sign-method=HS256", "jwt,sign-method=RS256,priv-key=/does/not/exist", "jwt,sign-method", "jwt,sign-method=HS256,sign-method=HS256",
		"jwt,sign-method=HS256,what=x", "jwt,sign-method=a=b", "jwt,", "simple,"} {
		if ValidateAuthToken(bad) == nil {
			t.Errorf("%q is valid", bad)
		}
	}
	if err := ValidateAuthToken(DefaultAuthToken); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Store: openStore(t, t.TempDir()), AuthToken: "nonsense"}); err == nil {
		t.Error("a server starts with nonsense")
	}
}

func TestSimpleTokenLife(t *testing.T) {
	a := newAuthTest(t, Config{})
	u, root := a.as("u"), a.as("root")
	t.Run("AUT-12/other changes", func(t *testing.T) {
		a.addUser(root, "later")
		wantStatus(t, a.get(u, "a"), codes.OK, "")
	})
	t.Run("AUT-12/password", func(t *testing.T) {
		if _, err := a.auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "u", Password: "new"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, a.get(u, "a"), codes.Unauthenticated, textBadToken)
		_, err := a.login("u", "u-pw")
		wantStatus(t, err, codes.InvalidArgument, textFailed)
		token, err := a.login("u", "new")
		wantStatus(t, err, codes.OK, "")
		wantStatus(t, a.get(withToken(a.ctx, token), "a"), codes.OK, "")
	})
	t.Run("AUT-12/deleted", func(t *testing.T) {
		later := a.as("later")
		if _, err := a.auth.UserDelete(root, &pb.AuthUserDeleteRequest{Name: "later"}); err != nil {
			t.Fatal(err)
		}
		a.addUser(root, "later")
		wantStatus(t, a.get(later, "a"), codes.Unauthenticated, textBadToken)
	})
	t.Run("AUT-12/switched off and on", func(t *testing.T) {
		if _, err := a.auth.AuthDisable(root, &pb.AuthDisableRequest{}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, a.get(root, "a"), codes.OK, "") // AUT-1
		if _, err := a.auth.AuthEnable(a.ctx, &pb.AuthEnableRequest{}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, a.get(root, "a"), codes.Unauthenticated, textBadToken)
	})
}
