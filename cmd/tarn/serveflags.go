package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

// register adds the flags of tarn serve. A flag that etcd has too has etcd's
// name and meaning.
func (o *serveOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	o.registerData(fs)
	o.registerNetwork(fs)
	o.tls.register(fs)
	o.auth.register(fs)
	o.registerLimits(fs)
	o.registerLogs(fs)
	o.toleratedSettings.register(fs)
}

// resolve fills in, after the flags were parsed, what the environment and the
// configuration file say.
func (o *serveOptions) resolve(fs *pflag.FlagSet, environ []string) (*layers, error) {
	l := newLayers(fs, o.toleratedSettings, environ)
	if err := l.applyEnv(); err != nil {
		return nil, err
	}
	return l, l.applyFile(o.configFile)
}

func (o *serveOptions) registerData(fs *pflag.FlagSet) {
	fs.Var(stringValue(&o.configFile, "file", "the path of a YAML file"), "config-file",
		"YAML file with settings: keys are flag names without the dashes")
	fs.Var(stringValue(&o.dataDir, "dir", "the path of a directory"), "data-dir",
		"directory of the data; made if it is missing")
	fs.Var(storeIDValue(&o.storeID), "store-id",
		"refuse to serve if the directory is empty or holds a store with another ID")
	fs.Var(stringValue(&o.dataset, "dataset", "a ZFS dataset such as tank/tarn"), "dataset",
		"refuse to serve if the directory is not on this mounted ZFS dataset")
	boolFlag(fs, &o.allowMissingLog, "allow-missing-log",
		"start from a tree.db whose log is missing, as in a restored snapshot; what was only in the log is gone")
	fs.Var(byteSizeValue(&o.checkpointBytes, 1<<10, ""), "checkpoint-bytes",
		"changes in the log that cause a checkpoint")
	fs.Var(durationValue(&o.checkpointAge, time.Second), "checkpoint-age",
		"how long a change may be in the log only")
	fs.Var(choiceValue(&o.compactMode, compactPeriodic, compactRevision), "auto-compaction-mode",
		"what --auto-compaction-retention counts: time or revisions")
	fs.Var(stringValue(&o.compactRetention, "retention", validRetention), "auto-compaction-retention",
		`history to keep: hours or a time such as 30m (periodic), or a number of revisions (revision); "0" is off`)
}

func (o *serveOptions) registerNetwork(fs *pflag.FlagSet) {
	fs.Var(stringValue(&o.name, "name", "a word"), "name", "name of this server in the member list")
	fs.Var(urlsValue(&o.listenClient, "listen", validListenURLs), "listen-client-urls",
		"where to serve clients: http://, https://, unix:// or unixs://, comma-separated")
	fs.Var(urlsValue(&o.advertiseClient, "advertised", validAdvertised), "advertise-client-urls",
		"URLs in the member list; clients that ask for it connect there (default: where clients are served)")
	fs.Var(urlsValue(&o.listenMetrics, "listen", validListenURLs), "listen-metrics-urls",
		"where to serve /metrics, /health, /livez and /readyz alone")
	fs.Var(durationValue(&o.keepAliveMinTime, 0), "grpc-keepalive-min-time",
		"shortest time between two pings of a client; one that pings more often is disconnected")
	fs.Var(namesValue(&o.cors, "origins such as https://example.org, separated by commas; * for all", checkOrigin), "cors",
		"origins whose pages may read in a browser, comma-separated")
}

func (o *serveOptions) registerLimits(fs *pflag.FlagSet) {
	fs.Var(byteSizeValue(&o.quota, -1<<62, "a number of bytes such as 2147483648 or 2GiB; 0 for the default, a negative one for no limit"),
		"quota-backend-bytes", "bytes in use at which writes are refused (NOSPACE)")
	fs.Var(byteSizeValue(&o.maxRequestBytes, 1<<10, ""), "max-request-bytes", "largest write request")
	fs.Var(intValue(&o.maxTxnOps, 1, math.MaxInt), "max-txn-ops", "operations in one branch of a transaction")
	fs.Var(intValue(&o.maxStreams, 1, math.MaxUint32), "max-concurrent-streams", "requests and watches that one connection may have open")
	fs.Var(listBudgetValue(&o.listBudget),
		"list-memory-budget", "memory for range answers that are being built or sent; 0: derived from the memory")
	fs.Var(durationValue(&o.progressInterval, 100*time.Millisecond), "watch-progress-notify-interval",
		"time between unasked progress messages to watches that want them")
}

func (o *serveOptions) registerLogs(fs *pflag.FlagSet) {
	fs.Var(levelValue(&o.logLevel), "log-level", "least important messages to log")
	fs.Var(choiceValue(&o.logFormat, logText, logJSON), "log-format", "format of the log on standard error")
	fs.Var(choiceValue(&o.metrics, metricsBasic, metricsExtensive), "metrics",
		"extensive adds a histogram of handling times per method")
	boolFlag(fs, &o.enablePprof, "enable-pprof", "serve profiles of this process below /debug/pprof/")
}

// listBudgetValue takes 0, or a size for which a budget makes a difference: answers that
// are smaller than MinListBudget never wait.
func listBudgetValue(p *int64) pflag.Value {
	valid := fmt.Sprintf("a number of bytes of at least %s, such as 268435456 or 256MiB; 0 to derive it from the memory",
		exactBytes(etcdapi.MinListBudget))
	return &value[int64]{p, "bytes", valid,
		func(s string) (int64, error) {
			n, err := parseBytes(s)
			if err == nil && n != 0 && n < etcdapi.MinListBudget {
				err = errNotValid
			}
			return n, err
		},
		exactBytes}
}

// storeIDValue takes the ID of a store.
func storeIDValue(p *string) pflag.Value {
	return &value[string]{p, "id", "the 32 hex digits that tarn check prints",
		func(s string) (string, error) {
			id, err := hex.DecodeString(s)
			if err != nil || len(id) != 16 || allZero(id) {
				return "", errNotValid
			}
			return hex.EncodeToString(id), nil
		},
		func(s string) string { return s }}
}

// allZero tells an ID that no store has.
func allZero(id []byte) bool {
	return !slices.ContainsFunc(id, func(b byte) bool { return b != 0 })
}

// boolFlag adds a flag that needs no value.
func boolFlag(fs *pflag.FlagSet, p *bool, name, usage string) {
	fs.VarPF(boolValue(p), name, "", usage).NoOptDefVal = "true"
}
