package embed

import (
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"
)

// Config describes the server that a test wants. What is not listed in
// arguments is accepted and has no effect on the process: peers, cluster and
// logger exist in etcd alone.
type Config struct {
	Name string
	Dir  string // data directory, made by the test

	ListenClientUrls    []url.URL // only the scheme of the first is used
	AdvertiseClientUrls []url.URL
	ListenPeerUrls      []url.URL
	AdvertisePeerUrls   []url.URL
	InitialCluster      string

	ClientTLSInfo transport.TLSInfo

	QuotaBackendBytes           int64         // bytes; 0 is the server's default
	WatchProgressNotifyInterval time.Duration // 0 is the server's default

	UnsafeNoFsync    bool
	ZapLoggerBuilder func(*Config) error
}

// NewConfig returns the configuration of a server with the name "default".
func NewConfig() *Config { return &Config{Name: "default"} }

// InitialClusterFromName returns the cluster that consists of the one server.
func (c *Config) InitialClusterFromName(name string) string {
	if len(c.AdvertisePeerUrls) == 0 {
		return ""
	}
	return name + "=" + c.AdvertisePeerUrls[0].String()
}

// NewZapLoggerBuilder returns a function that does nothing: a server process
// writes its own log, which is shown when the process fails.
func NewZapLoggerBuilder(*zap.Logger) func(*Config) error {
	return func(*Config) error { return nil }
}
