package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/store/vfs"
)

// clientOptions say how to reach a running server.
type clientOptions struct {
	endpoint          etcdapi.ListenURL
	caFile            string
	certFile, keyFile string
	user              userPassword
	// keyFlag is the flag of keyFile, where "key" means something else ("": it does not).
	keyFlag string
}

func defaultClientOptions() clientOptions {
	// Where tarn serve listens without settings.
	return clientOptions{endpoint: defaultServeOptions().listenClient[0]}
}

func (o *clientOptions) register(fs *pflag.FlagSet) {
	fs.Var(urlValue(&o.endpoint), "endpoint", "client URL of the server: http://, https://, unix:// or unixs://")
	fs.Var(stringValue(&o.caFile, "file", validPEM), "cacert", "authorities to check the server's certificate against, PEM (default: the system's)")
	fs.Var(stringValue(&o.certFile, "file", validPEM), "cert", "certificate to show the server, PEM")
	fs.Var(stringValue(&o.keyFile, "file", validPEM), o.keyName(), "key of the certificate, PEM")
	fs.Var(userValue(&o.user), "user", "name and password, if the server has users")
}

func (o *clientOptions) keyName() string {
	if o.keyFlag != "" {
		return o.keyFlag
	}
	return "key"
}

// client is a connection to a running server: its gRPC services and its pages.
type client struct {
	*grpc.ClientConn
	pages   *http.Client
	pageURL string // what page paths are appended to
}

// dial prepares a client. Nothing is sent yet. An error is one of the settings.
func (o *clientOptions) dial() (*client, error) {
	u := o.endpoint
	creds, scheme := insecure.NewCredentials(), "http"
	var tlsConfig *tls.Config
	if u.Secure() {
		var err error
		if tlsConfig, err = o.tlsConfig(); err != nil {
			return nil, err
		}
		creds, scheme = credentials.NewTLS(tlsConfig), "https"
	}
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return dialURL(ctx, u)
	}
	host := hostOf(u)
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(creds), grpc.WithContextDialer(dialer))
	if err != nil {
		return nil, fmt.Errorf("--endpoint %s: %w", u, err)
	}
	transport := &http.Transport{
		TLSClientConfig: tlsConfig,
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer(ctx, "") },
	}
	return &client{ClientConn: conn, pages: &http.Client{Transport: transport}, pageURL: scheme + "://" + host}, nil
}

// dialURL connects to a server without saying anything.
func dialURL(ctx context.Context, u etcdapi.ListenURL) (net.Conn, error) {
	network := "tcp"
	if isSocket(u) {
		network = "unix"
	}
	return (&net.Dialer{}).DialContext(ctx, network, u.Addr)
}

// hostOf is what the server's certificate has to be for, with the port.
func hostOf(u etcdapi.ListenURL) string {
	if isSocket(u) {
		return "localhost"
	}
	return u.Addr
}

func (c *client) close() {
	c.ClientConn.Close()
	c.pages.CloseIdleConnections()
}

func (o *clientOptions) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.caFile != "" {
		pool, err := readCertPool(o.caFile)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = pool
	}
	switch {
	case o.certFile == "" && o.keyFile == "":
		return config, nil
	case o.certFile == "" || o.keyFile == "":
		return nil, fmt.Errorf("--cert and --%s are needed together", o.keyName())
	}
	cert, err := etcdapi.LoadKeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--cert %s with --%s %s: %w", o.certFile, o.keyName(), o.keyFile, err)
	}
	config.Certificates = []tls.Certificate{cert}
	return config, nil
}

func readCertPool(path string) (*x509.CertPool, error) {
	pem, err := vfs.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}
