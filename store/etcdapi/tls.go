package etcdapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// TLSFiles say how to serve TLS. CertFile and KeyFile are needed.
type TLSFiles struct {
	CertFile, KeyFile string // PEM: the server's certificate chain and key

	// TrustedCAFile, PEM, is who may issue client certificates. If it is set, every
	// client must have a certificate from there that is for client authentication,
	// HTTP pages included (TLS-3). ClientCertAuth alone, without a CA, is an error:
	// etcd then trusts every CA of the operating system.
	TrustedCAFile  string
	ClientCertAuth bool

	MinVersion   string   // "TLS1.2" (default) or "TLS1.3"
	CipherSuites []string // Go's names, see cipherSuite; default Go's choice

	Logger *slog.Logger // default: discards
}

// Config is a configuration that reads the files now, and again when a client
// connects after they have changed, so that replacing a certificate, or the CA,
// needs no restart (TLS-6). If the new files cannot be used the old ones stay in
// use and the reason is logged. It returns an error when the files cannot be used
// at the first time or a setting is unknown.
func (f TLSFiles) Config() (*tls.Config, error) {
	config, _, err := f.Follow()
	return config, err
}

// Follow is Config, and returns a function too that reads the files at once, changed or not: one that
// could not be read may now be allowed to. If that function returns an error, the old ones stay in use. It
// may be called from any goroutine.
func (f TLSFiles) Follow() (config *tls.Config, reload func() error, err error) {
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	base, err := f.settings()
	if err != nil {
		return nil, nil, err
	}
	files := &tlsFiles{TLSFiles: f, base: base}
	if err := files.reload(); err != nil {
		return nil, nil, err
	}
	config = files.current.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return files.latest(), nil
	}
	return config, files.reload, nil
}

// Validate checks what can be checked without reading the files. It returns an
// error when a setting is unknown, or contradicts another one.
func (f TLSFiles) Validate() error {
	_, err := f.settings()
	return err
}

// settings is everything that does not come from files.
func (f TLSFiles) settings() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	switch f.MinVersion {
	case "", "TLS1.2":
	case "TLS1.3":
		config.MinVersion = tls.VersionTLS13
	default:
		return nil, fmt.Errorf("TLS minimum version %q is unknown; use TLS1.2 or TLS1.3", f.MinVersion)
	}
	for _, name := range f.CipherSuites {
		id, err := cipherSuite(name)
		if err != nil {
			return nil, err
		}
		config.CipherSuites = append(config.CipherSuites, id)
	}
	if len(config.CipherSuites) > 0 && config.MinVersion == tls.VersionTLS13 {
		return nil, errors.New("cipher suites cannot be chosen with a TLS minimum version of TLS1.3; remove one of the two settings")
	}
	if f.ClientCertAuth && f.TrustedCAFile == "" {
		return nil, errors.New("client certificates are required but no trusted CA file is set")
	}
	if f.TrustedCAFile != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// cipherSuite finds a suite by Go's name or, as etcd does, by an older name of the
// two with ChaCha20. Suites of TLS 1.3 are accepted as well: Go always offers them.
func cipherSuite(name string) (uint16, error) {
	var known []string
	for _, c := range tls.CipherSuites() {
		if c.Name == name || c.Name == name+"_SHA256" && strings.HasSuffix(name, "_CHACHA20_POLY1305") {
			return c.ID, nil
		}
		known = append(known, c.Name)
	}
	return 0, fmt.Errorf("cipher suite %q is unknown or not safe; known are %s", name, strings.Join(known, ", "))
}

// tlsFiles follows the files of a TLSFiles.
type tlsFiles struct {
	TLSFiles
	base *tls.Config

	mu      sync.Mutex
	seen    []fileState // of the last load, successful or not
	current *tls.Config
}

// fileState changes when a file is replaced or rewritten.
type fileState struct {
	name    string
	modTime time.Time
	size    int64
}

// latest is the configuration from the files as they are now. Finding that
// nothing has changed costs two or three stat calls per handshake.
func (t *tlsFiles) latest() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Equal(t.states(), t.seen) {
		return t.current
	}
	config, err := t.load()
	if err != nil {
		t.Logger.Error("changed TLS files cannot be used; the old ones stay in use", "error", err)
		return t.current
	}
	t.Logger.Info("changed TLS files are in use", "cert", t.CertFile)
	t.current = config
	return config
}

// reload reads the files, and uses them if it can.
func (t *tlsFiles) reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	config, err := t.load()
	if err != nil {
		return err
	}
	t.current = config
	return nil
}

func (t *tlsFiles) states() []fileState {
	var states []fileState
	for _, name := range []string{t.CertFile, t.KeyFile, t.TrustedCAFile} {
		state := fileState{name: name}
		if info, err := os.Stat(name); err == nil {
			state.modTime, state.size = info.ModTime(), info.Size()
		}
		states = append(states, state)
	}
	return states
}

func (t *tlsFiles) load() (*tls.Config, error) {
	t.seen = t.states() // before reading: a change meanwhile is seen next time
	config := t.base.Clone()
	cert, err := LoadKeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load TLS certificate %s with key %s: %w", t.CertFile, t.KeyFile, err)
	}
	config.Certificates = []tls.Certificate{cert}
	if t.TrustedCAFile == "" {
		return config, nil
	}
	pem, err := vfs.ReadFile(t.TrustedCAFile)
	if err != nil {
		return nil, fmt.Errorf("load trusted CA: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load trusted CA: %s has no certificate in PEM form", t.TrustedCAFile)
	}
	return config, nil
}

// LoadKeyPair is tls.LoadX509KeyPair, but does not wait for what is a pipe and no file.
func LoadKeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := vfs.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := vfs.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
