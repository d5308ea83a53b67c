package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a certificate authority for one test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir(), next: 2}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.crt", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.path(name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue writes name.crt and name.key for one use.
func (a *authority) issue(t *testing.T, name string, use x509.ExtKeyUsage) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	a.next++
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".crt", "CERTIFICATE", der)
	if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".key", "PRIVATE KEY", der)
}

func TestServeTLS(t *testing.T) {
	t.Run("client-cert-auth", func(t *testing.T) { testServeTLS(t, true) })
	t.Run("trusted-ca-file alone", func(t *testing.T) { testServeTLS(t, false) })
}

func testServeTLS(t *testing.T, certAuth bool) {
	a := newAuthority(t)
	a.issue(t, "server", x509.ExtKeyUsageServerAuth)
	a.issue(t, "client", x509.ExtKeyUsageClientAuth)
	o := testOptions(t)
	o.listenClient = mustURLs(t, "https://127.0.0.1:0")
	o.tls = tlsOptions{certFile: a.path("server.crt"), keyFile: a.path("server.key"),
		trustedCAFile: a.path("ca.crt"), clientCertAuth: certAuth, minVersion: tls13}
	r := start(t, o, nil)
	plain := start(t, testOptions(t), nil)

	ca, cert := "--cacert="+a.path("ca.crt"), []string{"--cert=" + a.path("client.crt"), "--key=" + a.path("client.key")}
	wrongUse := []string{"--cert=" + a.path("server.crt"), "--key=" + a.path("server.key")}
	status := []string{"status", "--endpoint=" + r.url}
	if code, out, errs := tarn(t, nil, append(status, append(cert, ca)...)...); code != exitOK {
		t.Errorf("TLS-3 with a client certificate: exit code %d: %s%s", code, out, errs)
	}
	const answers = "a server answers there"
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"TLS-3 without a client certificate", append(status, ca), []string{answers, "TLS failed", "--cert and --key"}},
		{"TLS-3 wrong use", append(status, append(wrongUse, ca)...), []string{answers, "it does not accept the certificate"}},
		{"a server without reason to trust it", append(status, cert...), []string{answers, "TLS failed", "--cacert"}},
		{"another authority", append(status, append(cert, "--cacert="+newAuthority(t).path("ca.crt"))...), []string{answers, "is not from the authorities in"}},
		{"another name", []string{"status", ca, "--endpoint=" + strings.Replace(r.url, "127.0.0.1", "localhost", 1)}, []string{answers, "a name in --endpoint"}},
		{"http to https", []string{"status", "--endpoint=" + strings.Replace(r.url, "https", "http", 1)}, []string{answers, "it speaks TLS", "https://"}},
		{"https to http", []string{"status", "--endpoint=" + strings.Replace(plain.url, "http", "https", 1)}, []string{answers, "does not speak TLS", "http://"}},
	} {
		code, _, errs := tarn(t, nil, tt.args...)
		for _, want := range tt.want {
			if code != exitFailed || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, and the message should have %q: %s", tt.name, code, want, errs)
			}
		}
	}
}
