package etcdapi

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

func statusOver(t *testing.T, addr string, config *tls.Config) error {
	t.Helper()
	conn := dial(t, addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	_, err := etcdserverpb.NewMaintenanceClient(conn).Status(testContext(t), &etcdserverpb.StatusRequest{})
	return err
}

// getOver does a request as curl does: it offers h2 and http/1.1.
func getOver(t *testing.T, url string, config *tls.Config) (*http.Response, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func TestTLS(t *testing.T) {
	ca := newTestCA(t)
	_, addr := startServer(t, Config{TLS: ca.server(nil)})

	t.Run("TLS-1 gRPC", func(t *testing.T) {
		if err := statusOver(t, addr, ca.client()); err != nil {
			t.Error(err)
		}
	})
	t.Run("TLS-1 HTTP", func(t *testing.T) {
		resp, body, err := getOver(t, "https://"+addr+"/health", ca.client())
		if err != nil || resp.StatusCode != 200 || !strings.Contains(body, `"true"`) {
			t.Errorf("%v %s %v", resp, body, err)
		}
	})
	t.Run("TLS-1 ALPN", func(t *testing.T) {
		for _, c := range []struct {
			offer []string
			want  string
		}{
			{[]string{"h2"}, "h2"},
			{[]string{"grpc-exp", "h2"}, "h2"},
			{[]string{"h2", "http/1.1"}, "http/1.1"},
			{[]string{"http/1.1"}, "http/1.1"},
			{nil, ""},
		} {
			config := ca.client()
			config.NextProtos = c.offer
			conn, err := tls.Dial("tcp", addr, config)
			if err != nil {
				t.Errorf("%v: %v", c.offer, err)
				continue
			}
			if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
				t.Errorf("offered %v: got %q, want %q", c.offer, got, c.want)
			}
			conn.Close()
		}
	})
	t.Run("no ALPN, HTTP", func(t *testing.T) {
		resp, _, err := getOver(t, "https://"+addr+"/version", func() *tls.Config {
			c := ca.client()
			c.NextProtos = []string{}
			return c
		}())
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%v %v", resp, err)
		}
	})
	t.Run("TLS-2", func(t *testing.T) {
		config := ca.client()
		config.MinVersion, config.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
		if conn, err := tls.Dial("tcp", addr, config); err == nil {
			conn.Close()
			t.Error("TLS 1.1 was accepted")
		}
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		if err := statusOver(t, addr, config); err != nil {
			t.Errorf("TLS 1.2: %v", err)
		}
	})
	t.Run("TLS-5", func(t *testing.T) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(waitLimit))
		if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(conn)
		if len(b) > 0 || os.IsTimeout(err) {
			t.Errorf("answer %q, %v", b, err)
		}
	})
}

// TestMetricsListenerWithTLS is TLS-3 for the metrics port.
func TestMetricsListenerWithTLS(t *testing.T) {
	ca := newTestCA(t)
	s, _ := startServer(t, Config{TLS: ca.server(ca.demand)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeMetrics(l) }()
	url := "https://" + l.Addr().String() + "/livez"
	if resp, _, err := getOver(t, url, ca.client(x509.ExtKeyUsageClientAuth)); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
	if resp, _, err := getOver(t, url, ca.client()); err == nil {
		t.Errorf("TLS-3 without a certificate: %v", resp)
	}
	if err := s.Stop(testContext(t)); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestClientCertificates(t *testing.T) {
	ca := newTestCA(t)
	t.Run("with client-cert-auth", func(t *testing.T) { testClientCertificates(t, ca, ca.demand) })
	// As in etcd, naming who may issue certificates means to demand one.
	t.Run("trusted CA alone", func(t *testing.T) {
		testClientCertificates(t, ca, func(f *TLSFiles) { f.TrustedCAFile = ca.file })
	})
}

func testClientCertificates(t *testing.T, ca *testCA, change func(*TLSFiles)) {
	_, addr := startServer(t, Config{TLS: ca.server(change)})
	good := ca.client(x509.ExtKeyUsageClientAuth)
	bad := map[string]*tls.Config{
		"none":        ca.client(),
		"wrong usage": ca.client(x509.ExtKeyUsageServerAuth),
		"other CA": func() *tls.Config {
			c := ca.client()
			c.Certificates = newTestCA(t).client(x509.ExtKeyUsageClientAuth).Certificates
			return c
		}(),
	}
	t.Run("TLS-3 good", func(t *testing.T) {
		if err := statusOver(t, addr, good); err != nil {
			t.Error(err)
		}
		if resp, _, err := getOver(t, "https://"+addr+"/metrics", good); err != nil || resp.StatusCode != 200 {
			t.Errorf("%v %v", resp, err)
		}
	})
	for name, config := range bad {
		t.Run("TLS-3 "+name, func(t *testing.T) {
			if err := statusOver(t, addr, config); status.Code(err) != codes.Unavailable {
				t.Errorf("gRPC: %v", err)
			}
			if resp, _, err := getOver(t, "https://"+addr+"/health", config); err == nil {
				t.Errorf("HTTP: %v", resp)
			}
		})
	}
}

func TestTLSFilesAreReadAgain(t *testing.T) {
	ca := newTestCA(t)
	var files TLSFiles
	_, addr := startServer(t, Config{TLS: ca.server(func(f *TLSFiles) { files = *f })})
	serial := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", addr, ca.client())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	first := serial()
	t.Run("TLS-6", func(t *testing.T) {
		ca.issue("server", x509.ExtKeyUsageServerAuth) // the same files
		if serial() == first {
			t.Error("the old certificate is still in use")
		}
	})
	t.Run("TLS-6 unusable", func(t *testing.T) {
		before := serial()
		if err := os.WriteFile(files.CertFile, []byte("half a fi"), 0o600); err != nil {
			t.Fatal(err)
		}
		if serial() != before {
			t.Error("the certificate changed")
		}
		ca.issue("server", x509.ExtKeyUsageServerAuth)
		if serial() == before {
			t.Error("the repaired certificate is not in use")
		}
	})
}

// TestTLSFilesReload: who asks for it gets the files read, also where nothing has changed that could be
// seen from outside, and is told what is wrong with them.
func TestTLSFilesReload(t *testing.T) {
	ca := newTestCA(t)
	files := TLSFiles{}
	files.CertFile, files.KeyFile = ca.issue("server", x509.ExtKeyUsageServerAuth)
	config, reload, err := files.Follow()
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() []byte {
		t.Helper()
		now, err := config.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return now.Certificates[0].Certificate[0]
	}
	first := inUse()
	good, err := os.ReadFile(files.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(files.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(files.CertFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(files.CertFile, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	replace(bytes.Repeat([]byte{'x'}, len(good)))
	if err := reload(); err == nil || !strings.Contains(err.Error(), files.CertFile) {
		t.Errorf("a file that is no certificate: %v", err)
	}
	if !bytes.Equal(inUse(), first) {
		t.Error("the old certificate is not in use any more")
	}
	replace(good)
	if err := reload(); err != nil {
		t.Errorf("the file is good again: %v", err)
	}
	ca.issue("server", x509.ExtKeyUsageServerAuth)
	if err := reload(); err != nil {
		t.Error(err)
	}
	if bytes.Equal(inUse(), first) {
		t.Error("the new certificate is not in use")
	}
}

func TestTLSSettings(t *testing.T) {
	ca := newTestCA(t)
	cert, key := ca.issue("server", x509.ExtKeyUsageServerAuth)
	for name, f := range map[string]TLSFiles{
		"no such file":       {CertFile: cert + ".not", KeyFile: key},
		"key does not match": {CertFile: ca.file, KeyFile: key},
		"CA is no PEM":       {CertFile: cert, KeyFile: key, TrustedCAFile: key},
		"no CA":              {CertFile: cert, KeyFile: key, ClientCertAuth: true},
		"version":            {CertFile: cert, KeyFile: key, MinVersion: "TLS1.1"},
		"cipher":             {CertFile: cert, KeyFile: key, CipherSuites: []string{"TLS_RSA_WITH_RC4_128_SHA"}},
		"cipher with 1.3":    {CertFile: cert, KeyFile: key, MinVersion: "TLS1.3", CipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}},
	} {
		if _, err := f.Config(); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for _, name := range []string{
		"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", // etcd's older name
		"TLS_AES_128_GCM_SHA256",               // of TLS 1.3
	} {
		config, err := TLSFiles{CertFile: cert, KeyFile: key, CipherSuites: []string{name}}.Config()
		if err != nil || len(config.CipherSuites) != 1 || config.MinVersion != tls.VersionTLS12 {
			t.Errorf("%s: %+v, %v", name, config, err)
		}
	}
}

// TestSecureListeners checks that a listener's URL decides whether it speaks TLS.
func TestSecureListeners(t *testing.T) {
	ca := newTestCA(t)
	s, err := New(Config{Store: openStore(t, t.TempDir()), TLS: ca.server(nil)})
	if err != nil {
		t.Fatal(err)
	}
	plain, secure := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "secure")
	for _, u := range []ListenURL{{"unix", plain}, {"unixs", secure}} {
		l, err := Listen(u)
		if err != nil {
			t.Fatal(err)
		}
		serveOn(t, s, l)
	}
	if _, err := etcdserverpb.NewMaintenanceClient(dial(t, "unix:"+plain)).Status(testContext(t), &etcdserverpb.StatusRequest{}); err != nil {
		t.Errorf("unix: %v", err)
	}
	if err := statusOver(t, "unix:"+secure, ca.client()); err != nil {
		t.Errorf("TLS-8 unixs: %v", err)
	}
	t.Run("no certificate", func(t *testing.T) {
		bare, _ := startServer(t, Config{})
		l, err := Listen(ListenURL{Scheme: "unixs", Addr: filepath.Join(t.TempDir(), "s")})
		if err != nil {
			t.Fatal(err)
		}
		if err := bare.Serve(l); err == nil {
			t.Error("TLS without a certificate was accepted")
		}
	})
}
