package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

type tlsVersion string

const (
	tls12 tlsVersion = "TLS1.2"
	tls13 tlsVersion = "TLS1.3"
)

// tlsOptions are the settings for https:// and unixs:// listeners.
type tlsOptions struct {
	certFile, keyFile string
	trustedCAFile     string
	clientCertAuth    bool
	minVersion        tlsVersion
	cipherSuites      []string
}

func (o *tlsOptions) register(fs *pflag.FlagSet) {
	fs.Var(stringValue(&o.certFile, "file", validPEM), "cert-file",
		"certificate of the server, PEM; a replaced file is noticed")
	fs.Var(stringValue(&o.keyFile, "file", validPEM), "key-file", "key of the certificate, PEM")
	fs.Var(stringValue(&o.trustedCAFile, "file", validPEM), "trusted-ca-file",
		"authorities that may issue clients' certificates, PEM")
	boolFlag(fs, &o.clientCertAuth, "client-cert-auth", "demand a certificate from clients")
	fs.Var(choiceValue(&o.minVersion, tls12, tls13), "tls-min-version", "oldest TLS version to speak")
	fs.Var(namesValue(&o.cipherSuites, "Go's names of TLS 1.2 suites, separated by commas"), "cipher-suites",
		"TLS 1.2 cipher suites to offer, comma-separated (default: Go's choice)")
}

const validPEM = "the path of a PEM file"

// config is the TLS configuration for a server that listens at these URLs; nil
// if none of them speaks TLS.
func (o *tlsOptions) config(urls []etcdapi.ListenURL, log *slog.Logger) (*tls.Config, error) {
	switch secure := slices.ContainsFunc(urls, etcdapi.ListenURL.Secure); {
	case !secure && o.clientCertAuth:
		// Somebody believes that strangers are kept out.
		return nil, errors.New("--client-cert-auth has no effect: no URL to listen at begins with https:// or unixs://")
	case !secure:
		return nil, nil
	case o.certFile == "" || o.keyFile == "":
		return nil, errors.New("URLs with https:// or unixs:// need --cert-file and --key-file")
	}
	config, err := etcdapi.TLSFiles{
		CertFile:       o.certFile,
		KeyFile:        o.keyFile,
		TrustedCAFile:  o.trustedCAFile,
		ClientCertAuth: o.clientCertAuth,
		MinVersion:     string(o.minVersion),
		CipherSuites:   o.cipherSuites,
		Logger:         log,
	}.Config()
	if err != nil {
		return nil, fmt.Errorf("TLS settings: %w", err)
	}
	return config, nil
}
