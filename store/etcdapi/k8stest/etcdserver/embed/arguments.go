package embed

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Environment variables that name the server under test.
const (
	EnvBinary = "TARN_K8S_SERVER"      // path of the server binary
	EnvKind   = "TARN_K8S_SERVER_KIND" // "tarn" or "etcd": whose flags it takes
)

// binary returns the server to start and whether it is a real etcd.
func binary() (path string, isEtcd bool, err error) {
	path, kind := os.Getenv(EnvBinary), os.Getenv(EnvKind)
	if path == "" || kind != "tarn" && kind != "etcd" {
		return "", false, fmt.Errorf("no server to test: %s=%q must be the path of a server and %s=%q must be tarn or etcd; "+
			"run the tests with \"go run .\" in k8stest, which sets both", EnvBinary, path, EnvKind, kind)
	}
	return path, kind == "etcd", nil
}

// serverEnvironment is the environment without variables that a server would
// take for its settings.
func serverEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TARN_") || strings.HasPrefix(v, "ETCD_")
	})
}

func tarnArguments(c *Config, client url.URL) []string {
	return append([]string{"serve", "--listen-client-urls", client.String()}, commonArguments(c)...)
}

func etcdArguments(c *Config, client, peer url.URL) []string {
	args := []string{"--listen-client-urls", client.String(), "--advertise-client-urls", client.String(),
		"--listen-peer-urls", peer.String(), "--initial-advertise-peer-urls", peer.String(),
		"--initial-cluster", c.Name + "=" + peer.String()}
	if c.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return append(args, commonArguments(c)...)
}

// commonArguments are the flags that both servers take.
func commonArguments(c *Config) []string {
	args := []string{"--name", c.Name, "--data-dir", filepath.Join(c.Dir, "data"), "--log-level", "warn"}
	for _, f := range []struct{ name, value string }{
		{"--cert-file", c.ClientTLSInfo.CertFile},
		{"--key-file", c.ClientTLSInfo.KeyFile},
		{"--trusted-ca-file", c.ClientTLSInfo.TrustedCAFile},
		{"--quota-backend-bytes", optional(c.QuotaBackendBytes)},
		{"--watch-progress-notify-interval", optional(c.WatchProgressNotifyInterval)},
	} {
		if f.value != "" {
			args = append(args, f.name, f.value)
		}
	}
	return args
}

// optional returns the text of a number, and nothing for 0.
func optional[N interface{ ~int64 }](n N) string {
	if n == 0 {
		return ""
	}
	if s, ok := any(n).(fmt.Stringer); ok {
		return s.String()
	}
	return strconv.FormatInt(int64(n), 10)
}
