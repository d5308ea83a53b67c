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
	a := newAuthority(t)
	a.issue(t, "server", x509.ExtKeyUsageServerAuth)
	a.issue(t, "client", x509.ExtKeyUsageClientAuth)
	o := testOptions(t)
	o.listenClient = mustURLs(t, "https://127.0.0.1:0")
	o.tls = tlsOptions{certFile: a.path("server.crt"), keyFile: a.path("server.key"),
		trustedCAFile: a.path("ca.crt"), clientCertAuth: true, minVersion: tls13}
	r := start(t, o, nil)

	ca, cert := "--cacert="+a.path("ca.crt"), []string{"--cert=" + a.path("client.crt"), "--key=" + a.path("client.key")}
	status := []string{"status", "--endpoint=" + r.url}
	if code, out, errs := tarn(t, nil, append(status, append(cert, ca)...)...); code != exitOK {
		t.Errorf("TLS-3 with a client certificate: exit code %d: %s%s", code, out, errs)
	}
	if code, _, errs := tarn(t, nil, append(status, ca)...); code != exitFailed {
		t.Errorf("TLS-3 without a client certificate: exit code %d: %s", code, errs)
	}
	if code, _, errs := tarn(t, nil, append(status, cert...)...); code != exitFailed {
		t.Errorf("a server that the client has no reason to trust: exit code %d: %s", code, errs)
	}
}
