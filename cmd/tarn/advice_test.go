package main

import (
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store"
)

// Each message names the setting, its value, where it came from and what is valid.
func TestTLSFileErrors(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", x509.ExtKeyUsageServerAuth)
	a.issue(t, "other", x509.ExtKeyUsageServerAuth)
	nothing := writeFile(t, "nothing.pem", "nothing")
	for name, tt := range map[string]struct {
		cert, key, ca string
		want          []string
	}{
		"other key":      {a.path("server.crt"), a.path("other.key"), "", []string{"--key-file can not be", a.path("other.key"), "belongs to the certificate in --cert-file"}},
		"no certificate": {nothing, a.path("server.key"), "", []string{"--cert-file can not be", nothing, "no certificate in PEM form"}},
		"no file":        {"/does/not/exist", a.path("server.key"), "", []string{"--cert-file can not be", "no such file", validPEM}},
		"no key file":    {a.path("server.crt"), "/does/not/exist", "", []string{"--key-file can not be", "no such file"}},
		"no key":         {a.path("server.crt"), nothing, "", []string{"--key-file can not be", nothing}},
		"no authority":   {a.path("server.crt"), a.path("server.key"), a.path("other.key"), []string{"--trusted-ca-file can not be", "no certificate in PEM form"}},
		"no CA file":     {a.path("server.crt"), a.path("server.key"), "/does/not/exist", []string{"--trusted-ca-file can not be", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"serve", "--listen-client-urls=https://127.0.0.1:0", "--data-dir=" + t.TempDir(), "--cert-file=" + tt.cert, "--key-file=" + tt.key}
			if tt.ca != "" {
				args = append(args, "--trusted-ca-file="+tt.ca)
			}
			code, _, errs := tarn(t, nil, args...)
			for _, want := range append(tt.want, "from the command line") {
				if code != exitUsage || !strings.Contains(errs, want) {
					t.Errorf("exit code %d, and the message should have %q: %s", code, want, errs)
				}
			}
		})
	}
}

// What the system refuses comes with the setting and the next step.
func TestSystemErrorsHaveAdvice(t *testing.T) {
	o := testOptions(t)
	s := newServing(o, sources{"data-dir": fromFlag}, &syncBuffer{})
	s.open = func(store.Options) (*store.Store, error) {
		return nil, &os.PathError{Op: "mkdir", Path: o.dataDir, Err: syscall.EACCES}
	}
	err := s.run(t.Context(), nil)
	for _, want := range []string{"--data-dir (from the command line)", "permission denied", "must belong to the user that Tarn runs as (uid "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	for _, tt := range []struct {
		url  string
		err  error
		want string
	}{
		{"unix:///run/x/t.sock", syscall.EACCES, "the directory /run/x must belong to"},
		{"unix:///run/x/t.sock", syscall.ENOENT, "make the directory /run/x"},
		{"unix:///run/x/t.sock", syscall.EROFS, "mounted read-only"},
		{"http://127.0.0.1:80", syscall.EACCES, "CAP_NET_BIND_SERVICE"},
		{"http://127.0.0.1:2379", syscall.EADDRINUSE, "choose another port"},
	} {
		err := listenAdvice(mustURLs(t, tt.url)[0], &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", tt.err)})
		if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.url, err, tt.want)
		}
	}
	o.listenClient = mustURLs(t, "unix://"+filepath.Join(t.TempDir(), "none", "t.sock"))
	if err := newServing(o, sources{}, &syncBuffer{}).run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "make the directory") {
		t.Errorf("%v", err)
	}
}
