package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

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
	boolFlag(fs, &o.clientCertAuth, "client-cert-auth", "take the CommonName of a client's certificate for its user; needs --trusted-ca-file, which demands the certificate")
	fs.Var(choiceValue(&o.minVersion, tls12, tls13), "tls-min-version", "oldest TLS version to speak")
	fs.Var(namesValue(&o.cipherSuites, "Go's names of suites, separated by commas", checkSuite), "cipher-suites",
		"cipher suites to offer with TLS 1.2, comma-separated (default: Go's choice)")
}

const validPEM = "the path of a PEM file"

// urlSetting is a setting with URLs to listen at.
type urlSetting struct {
	flag string
	urls []etcdapi.ListenURL
}

func (u urlSetting) secure() bool { return slices.ContainsFunc(u.urls, etcdapi.ListenURL.Secure) }

// config is the TLS configuration for a server that listens at these URLs, and a function
// that reads its files again; both are nil if none of the URLs speaks TLS.
func (o *tlsOptions) config(listen []urlSetting, from sources, log *slog.Logger) (*tls.Config, func() error, error) {
	if err := o.contradiction(listen, from); err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(listen, urlSetting.secure) {
		return nil, nil, nil
	}
	if err := o.checkFiles(from); err != nil {
		return nil, nil, err
	}
	config, reload, err := etcdapi.TLSFiles{
		CertFile:       o.certFile,
		KeyFile:        o.keyFile,
		TrustedCAFile:  o.trustedCAFile,
		ClientCertAuth: o.clientCertAuth,
		MinVersion:     string(o.minVersion),
		CipherSuites:   o.cipherSuites,
		Logger:         log,
	}.Follow()
	if err != nil {
		return nil, nil, fmt.Errorf("TLS settings: %w", err)
	}
	return config, reload, nil
}

// contradiction tells which of the settings can not be what it is beside the others. It is
// asked for without a URL that speaks TLS too: a mistake should not wait for the day of the
// first https://.
func (o *tlsOptions) contradiction(listen []urlSetting, from sources) error {
	wrong := func(flag, value, why string) error {
		return &settingError{flag, value, from.of(flag), errors.New(why)}
	}
	const noEffect = "it has no effect: no URL to listen at begins with https:// or unixs://; " +
		"change --listen-client-urls, or leave the setting out"
	secure := slices.ContainsFunc(listen, urlSetting.secure)
	switch {
	// Somebody believes that strangers are kept out.
	case !secure && o.clientCertAuth:
		return wrong("client-cert-auth", "true", noEffect)
	case !secure && o.trustedCAFile != "":
		return wrong("trusted-ca-file", o.trustedCAFile, noEffect)
	case o.clientCertAuth && o.trustedCAFile == "":
		return wrong("client-cert-auth", "true", "it needs --trusted-ca-file: the authorities that may issue client certificates")
	case o.minVersion == tls13 && len(o.cipherSuites) > 0:
		return wrong("cipher-suites", strings.Join(o.cipherSuites, ","),
			"suites can not be chosen with --tls-min-version TLS1.3; leave one of the two out")
	case !secure:
		return nil
	case o.certFile != "" && o.keyFile != "":
		return nil
	}
	for _, l := range listen {
		if l.secure() {
			return wrong(l.flag, strings.Join(urlTexts(l.urls), ","),
				"https:// and unixs:// need a certificate: set --cert-file and --key-file, or use http:// or unix://")
		}
	}
	return nil
}

// checkSuite tells whether a cipher suite can be offered.
func checkSuite(name string) error {
	return etcdapi.TLSFiles{CipherSuites: []string{name}}.Validate()
}
