package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"as it is", "--name=a --data-dir d --quota-backend-bytes=5", "--name=a --data-dir=d --quota-backend-bytes=5"},
		{"one dash", "-name a", "--name=a"},
		{"switches take no value", "--strict-reconfig-check --pre-vote --name a", "--strict-reconfig-check --pre-vote --name=a"},
		{"an authority that is not asked for", "--trusted-ca-file ca.crt --name=a", "--name=a"},
		{"an authority that is", "--trusted-ca-file ca.crt --client-cert-auth", "--trusted-ca-file=ca.crt --client-cert-auth"},
		{"certificates turned off", "--trusted-ca-file=ca.crt --client-cert-auth=false", "--client-cert-auth=false"},
		{"a cluster of one", "--initial-cluster=a=http://127.0.0.1:2380", "--initial-cluster=a=http://127.0.0.1:2380"},
		{"no certificate of its own", "--auto-tls=false", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := translate(strings.Fields(c.args))
			want := append([]string{"--log-format=json", "--bcrypt-cost=4"}, strings.Fields(c.want)...)
			if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
}

func TestNotTranslated(t *testing.T) {
	for _, args := range []string{"serve", "--initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2"} {
		if out, err := translate(strings.Fields(args)); err == nil {
			t.Errorf("%s: %q, want an error", args, out)
		}
	}
}

func TestSelfSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	out, err := translate([]string{"--data-dir", dir, "--auto-tls"})
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range out {
		if name, file, _ := strings.Cut(arg, "="); name == "--cert-file" || name == "--key-file" {
			if content, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(content), "-----BEGIN ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
