package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestAuthSettings(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _, err := resolveServe(t, []string{"--auth-token=jwt,sign-method=HS256,priv-key=" + secret}, []string{"TARN_BCRYPT_COST=4"}, "auth-token-ttl: 60\n")
	if err != nil || o.auth.tokenTTL != time.Minute || o.auth.bcryptCost != 4 {
		t.Errorf("%+v, %v", o.auth, err)
	}
	o.dataDir = t.TempDir()
	if _, err := newServing(o, sources{}, &syncBuffer{}).validate(); err != nil {
		t.Error(err)
	}
	for setting, want := range map[string]string{
		"TARN_AUTH_TOKEN_TTL=1m": "a whole number of seconds", "TARN_AUTH_TOKEN_TTL=0": "at least 1",
		"TARN_BCRYPT_COST=3": "from 4 to 31", "TARN_BCRYPT_COST=32": "from 4 to 31",
		"TARN_AUTH_TOKEN=nonsense": "use simple", "TARN_AUTH_TOKEN=jwt,sign-method=RS256,priv-key=/none": "no such file",
	} {
		o, l, err := resolveServe(t, []string{"--data-dir=" + t.TempDir()}, []string{setting}, "")
		if err == nil {
			_, err = newServing(o, l.from, &syncBuffer{}).validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// Users are in the store: they are asked for after a restart too.
func TestServeWithUsers(t *testing.T) {
	o := testOptions(t)
	o.auth.bcryptCost = 4
	r := start(t, o, nil)
	auth := etcdserverpb.NewAuthClient(r.client(t))
	_, err := auth.UserAdd(t.Context(), &etcdserverpb.AuthUserAddRequest{Name: "root", Password: "pw:with colon"})
	if err == nil {
		_, err = auth.UserGrantRole(t.Context(), &etcdserverpb.AuthUserGrantRoleRequest{User: "root", Role: "root"})
	}
	if err == nil {
		_, err = auth.AuthEnable(t.Context(), &etcdserverpb.AuthEnableRequest{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.end(t)
	r = start(t, o, nil)
	if err := put(t, r.client(t), "a", "1"); err == nil || !strings.Contains(err.Error(), "user name is empty") {
		t.Errorf("put: %v", err)
	}
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"nobody", nil, nil, exitFailed, "give a user's name and password with --user"},
		{"wrong", nil, []string{"--user=root:no"}, exitFailed, `does not accept the password of user "root"`},
		{"flag", nil, []string{"--user=root:pw:with colon"}, exitOK, ""},
		{"variable", []string{"TARN_USER=root:pw:with colon"}, nil, exitOK, ""},
		{"no password", nil, []string{"--user=root"}, exitUsage, "name:password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errs := tarn(t, tt.env, append([]string{"status", "--endpoint=" + r.url}, tt.args...)...)
			if code != tt.code || !strings.Contains(errs, tt.want) || strings.Contains(errs, "pw:with") {
				t.Errorf("exit code %d, %s", code, errs)
			}
		})
	}
	open := start(t, testOptions(t), nil)
	if code, _, errs := tarn(t, nil, "status", "--endpoint="+open.url, "--user=u:x"); code != exitOK {
		t.Errorf("a user for a server that asks nobody: exit code %d, %s", code, errs)
	}
}

func TestWarnExposedWithUsers(t *testing.T) {
	for url, want := range map[string]string{"http://0.0.0.0:2379": "in the clear", "https://0.0.0.0:2379": ""} {
		log := &syncBuffer{}
		o := testOptions(t)
		o.listenClient = mustURLs(t, url)
		newServing(o, nil, log).warnExposed(true)
		if text := log.String(); want == "" && text != "" || !strings.Contains(text, want) || strings.Contains(text, "ANYONE") {
			t.Errorf("%s: %s", url, text)
		}
	}
}
