package integration

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// The certificates that lie beside etcd's tests.
var (
	TestTLSInfo                  = certificates("fixtures", "server", "")
	TestTLSInfoWithSpecificUsage = certificates("fixtures", "server-serverusage", "client-clientusage")
	TestTLSInfoIP                = certificates("fixtures", "server-ip", "")
	TestTLSInfoExpired           = certificates("integration/fixtures-expired", "server", "")
	TestTLSInfoExpiredIP         = certificates("integration/fixtures-expired", "server-ip", "")

	// DefaultTokenJWT makes the server sign tokens with the key of the
	// server's certificate; they last two seconds.
	DefaultTokenJWT = fmt.Sprintf("jwt,pub-key=%s,priv-key=%s,sign-method=RS256,ttl=2s",
		fixture("fixtures", "server.crt"), fixture("fixtures", "server.key.insecure"))
)

func certificates(dir, server, client string) transport.TLSInfo {
	info := transport.TLSInfo{
		KeyFile:        fixture(dir, server+".key.insecure"),
		CertFile:       fixture(dir, server+".crt"),
		TrustedCAFile:  fixture(dir, "ca.crt"),
		ClientCertAuth: true,
	}
	if client != "" {
		info.ClientKeyFile = fixture(dir, client+".key.insecure")
		info.ClientCertFile = fixture(dir, client+".crt")
	}
	return info
}

// fixture returns the path of a file in a directory of etcd's tests.
func fixture(dir, name string) string {
	return filepath.Join(os.Getenv("TOOLSTEST_TREE"), dir, name)
}
