package etcdapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
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

// testCA issues certificates into files.
type testCA struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
	next int64
}

func newTestCA(t *testing.T) *testCA {
	t.Helper()
	ca := &testCA{t: t, dir: t.TempDir(), next: 1}
	ca.file, _ = ca.write("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	return ca
}

// issue makes a certificate for one usage and returns its files.
func (ca *testCA) issue(name string, usage x509.ExtKeyUsage) (certFile, keyFile string) {
	return ca.write(name, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature,
	})
}

func (ca *testCA) write(name string, template *x509.Certificate) (certFile, keyFile string) {
	ca.t.Helper()
	must := func(err error) {
		if err != nil {
			ca.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template.SerialNumber = big.NewInt(ca.next)
	ca.next++
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, parentKey := ca.cert, ca.key
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	must(err)
	if ca.cert == nil {
		ca.key = key
		ca.cert, err = x509.ParseCertificate(der)
		must(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	certFile, keyFile = filepath.Join(ca.dir, name+".crt"), filepath.Join(ca.dir, name+".key")
	must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile
}

// client is the configuration of a client that trusts the CA and has a
// certificate for the usage, if any.
func (ca *testCA) client(usage ...x509.ExtKeyUsage) *tls.Config {
	ca.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AddCert(ca.cert)
	for _, u := range usage {
		cert, err := tls.LoadX509KeyPair(ca.issue("client", u))
		if err != nil {
			ca.t.Fatal(err)
		}
		config.Certificates = append(config.Certificates, cert)
	}
	return config
}

func (ca *testCA) server(change func(*TLSFiles)) *tls.Config {
	ca.t.Helper()
	var files TLSFiles
	files.CertFile, files.KeyFile = ca.issue("server", x509.ExtKeyUsageServerAuth)
	if change != nil {
		change(&files)
	}
	config, err := files.Config()
	if err != nil {
		ca.t.Fatal(err)
	}
	return config
}

// demand makes a server ask for certificates that the CA issued.
func (ca *testCA) demand(f *TLSFiles) { f.TrustedCAFile, f.ClientCertAuth = ca.file, true }
