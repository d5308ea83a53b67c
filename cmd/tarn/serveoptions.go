package main

import (
	"log/slog"
	"math"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
)

// defaultDataDir is for trying it out: a directory below the current one. The
// service unit of an installed Tarn names another.
const defaultDataDir = "tarn-data"

// serveOptions are the settings of tarn serve.
type serveOptions struct {
	configFile string

	name              string
	dataDir           string
	storeID           string
	dataset           string
	allowMissingLog   bool
	listenClient      []etcdapi.ListenURL
	advertiseClient   []etcdapi.ListenURL
	listenMetrics     []etcdapi.ListenURL
	tls               tlsOptions
	auth              authOptions
	quota             int64
	maxRequestBytes   int64
	maxTxnOps         int
	maxStreams        int
	progressInterval  time.Duration
	compactMode       compactMode
	compactRetention  string // read with the mode, see parseRetention
	keepAliveMinTime  time.Duration
	cors              []string
	listBudget        int64
	checkpointBytes   int64
	checkpointAge     time.Duration
	enablePprof       bool
	metrics           metricsDetail
	logLevel          slog.Level
	logFormat         logFormat
	toleratedSettings tolerated
}

// metricsDetail is how much /metrics tells.
type metricsDetail string

const (
	metricsBasic     metricsDetail = "basic"
	metricsExtensive metricsDetail = "extensive"
)

func defaultServeOptions() serveOptions {
	return serveOptions{
		// etcd's name for a member without one.
		name:    etcdapi.DefaultName,
		dataDir: defaultDataDir,
		// etcd's port, and only this machine: there is no access control
		// before somebody sets it up.
		listenClient: []etcdapi.ListenURL{{Scheme: "http", Addr: "127.0.0.1:2379"}},
		tls:          tlsOptions{minVersion: tls12},
		// etcd's.
		auth: authOptions{token: etcdapi.DefaultAuthToken, tokenTTL: etcdapi.DefaultAuthTokenTTL, bcryptCost: etcdapi.DefaultBcryptCost},
		// etcd's limits: clients know them, and a backup must be restorable there.
		quota:           store.DefaultQuota,
		maxRequestBytes: etcdapi.DefaultMaxRequestBytes,
		maxTxnOps:       etcdapi.DefaultMaxTxnOps,
		maxStreams:      math.MaxUint32,
		// etcd's. A smaller one costs a message per idle watch each time.
		progressInterval: 10 * time.Minute,
		// Off, as in etcd: kube-apiserver compacts by itself.
		compactMode:      compactPeriodic,
		compactRetention: "0",
		// etcd's. kube-apiserver pings every 30 s.
		keepAliveMinTime: etcdapi.DefaultKeepAliveMinTime,
		// etcd's: pages in a browser may read from anywhere.
		cors: []string{"*"},
		// Derived from the machine's memory.
		listBudget: 0,
		// A checkpoint writes whole pages, so a larger tail writes less in all;
		// it is also the memory that the tail takes and what a start has to read.
		checkpointBytes: 16 << 20,
		// An idle server still comes to rest with everything in one file.
		checkpointAge: 5 * time.Minute,
		metrics:       metricsBasic,
		logLevel:      slog.LevelInfo,
		logFormat:     logText,
	}
}
