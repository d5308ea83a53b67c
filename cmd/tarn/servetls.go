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
		"demand a certificate of these authorities, PEM, from every client")
	boolFlag(fs, &o.clientCertAuth, "client-cert-auth", "demand a certificate from every client; needs --trusted-ca-file, which alone does the same")
	fs.Var(choiceValue(&o.minVersion, tls12, tls13), "tls-min-version", "oldest TLS version to speak")
	fs.Var(namesValue(&o.cipherSuites, "Go's names of suites, separated by commas"), "cipher-suites",
		"cipher suites to offer with TLS 1.2, comma-separated (default: Go's choice)")
}

const validPEM = "the path of a PEM file"

// config is the TLS configuration for a server that listens at these URLs; nil
// if none of them speaks TLS.
func (o *tlsOptions) config(urls []etcdapi.ListenURL, log *slog.Logger) (*tls.Config, error) {
	files := etcdapi.TLSFiles{
		CertFile:       o.certFile,
		KeyFile:        o.keyFile,
		TrustedCAFile:  o.trustedCAFile,
		ClientCertAuth: o.clientCertAuth,
		MinVersion:     string(o.minVersion),
		CipherSuites:   o.cipherSuites,
		Logger:         log,
	}
	const noEffect = "--%s has no effect: no URL to listen at begins with https:// or unixs://"
	secure := slices.ContainsFunc(urls, etcdapi.ListenURL.Secure)
	switch {
	// Somebody believes that strangers are kept out.
	case !secure && o.clientCertAuth:
		return nil, fmt.Errorf(noEffect, "client-cert-auth")
	case !secure && o.trustedCAFile != "":
		return nil, fmt.Errorf(noEffect, "trusted-ca-file")
	case secure && (o.certFile == "" || o.keyFile == ""):
		return nil, errors.New("URLs with https:// or unixs:// need --cert-file and --key-file")
	case !secure:
		// What can be checked is: a mistake should not wait for the day of the first https://.
		if err := files.Validate(); err != nil {
			return nil, fmt.Errorf("TLS settings: %w", err)
		}
		return nil, nil
	}
	config, err := files.Config()
	if err != nil {
		return nil, fmt.Errorf("TLS settings: %w", err)
	}
	return config, nil
}
