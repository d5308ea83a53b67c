package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/store/vfs"
)

// checkFiles tells which of the files named by the settings can not be used, and why.
func (o *tlsOptions) checkFiles(from sources) error {
	cert, err := readSetting("cert-file", o.certFile, from)
	if err != nil {
		return err
	}
	if err := checkCertificates(cert); err != nil {
		return &settingError{"cert-file", o.certFile, from.of("cert-file"), err}
	}
	key, err := readSetting("key-file", o.keyFile, from)
	if err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return &settingError{"key-file", o.keyFile, from.of("key-file"),
			fmt.Errorf("%w; valid: the PEM file with the key that belongs to the certificate in --cert-file %s", err, o.certFile)}
	}
	if o.trustedCAFile == "" {
		return nil
	}
	ca, err := readSetting("trusted-ca-file", o.trustedCAFile, from)
	if err != nil {
		return err
	}
	if err := checkCertificates(ca); err != nil {
		return &settingError{"trusted-ca-file", o.trustedCAFile, from.of("trusted-ca-file"), err}
	}
	return nil
}

// readSetting reads the file that a setting names.
func readSetting(flag, path string, from sources) ([]byte, error) {
	text, err := vfs.ReadFile(path)
	if err != nil {
		return nil, &settingError{flag, path, from.of(flag),
			fmt.Errorf("%w; valid: %s", withAdvice(err, "it must be readable by "+whoRuns()), validPEM)}
	}
	return text, nil
}

// checkCertificates tells what is wrong with a PEM file of certificates.
func checkCertificates(text []byte) error {
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return errors.New("the file has no certificate in PEM form (-----BEGIN CERTIFICATE-----)")
	}
	return nil
}
