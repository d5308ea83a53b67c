package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// selfSigned does what etcd's --auto-tls does: it makes a certificate for the
// addresses of loopback and returns the flags that name it. It lies beside the
// data directory.
func selfSigned(dataDir string) ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{Organization: []string{"etcd"}},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := dataDir+".crt", dataDir+".key"
	if err := writePEM(certFile, "CERTIFICATE", cert); err != nil {
		return nil, err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", private); err != nil {
		return nil, err
	}
	return []string{"--cert-file=" + certFile, "--key-file=" + keyFile}, nil
}

func writePEM(path, kind string, der []byte) error {
	err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	if err != nil {
		return fmt.Errorf("write the certificate of --auto-tls: %w", err)
	}
	return nil
}
