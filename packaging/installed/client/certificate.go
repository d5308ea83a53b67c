package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// runCertificate makes a certificate for the server in a directory, signed by itself, and
// prints its serial number. Each call makes another; clients trust all that were made in the
// directory.
func runCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixMicro()),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	trusted, err := os.OpenFile(filepath.Join(dir, "trusted.crt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer trusted.Close()
	if _, err := trusted.Write(certificate); err != nil {
		return err
	}
	// In place, so that owner and mode stay.
	if err := os.WriteFile(filepath.Join(dir, "server.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o640); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "server.crt"), certificate, 0o644); err != nil {
		return err
	}
	fmt.Println(about.SerialNumber)
	return nil
}

// runSerial prints the serial number of the certificate that the server shows.
func runSerial(ctx context.Context, o settings) error {
	config, err := o.tls()
	if err != nil {
		return err
	}
	network, address := splitAddress(o.endpoint(0))
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Println(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber)
	return nil
}

// tls is what clients need for https. It trusts what the file has at the time of each
// connection: the certificate of the server changes under a load.
func (o *settings) tls() (*tls.Config, error) {
	if o.trusted == "" {
		return nil, nil
	}
	verify := func(state tls.ConnectionState) error {
		file, err := os.ReadFile(o.trusted)
		if err != nil {
			return err
		}
		shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: state.PeerCertificates[0].Raw})
		if !bytes.Contains(file, shown) {
			return fmt.Errorf("the server shows the certificate %v, which is none of those in %s", state.PeerCertificates[0].SerialNumber, o.trusted)
		}
		return nil
	}
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: verify}, nil // it is compared, byte for byte
}
