package etcdapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics have etcd's names where a figure means the same here, so that its
// dashboards and alerts work; what only this server has starts with tarn_. All
// but the histograms are read when somebody scrapes: nothing runs in between.

// diskBuckets are etcd's: 1 ms to 8.2 s, doubling.
var diskBuckets = prometheus.ExponentialBuckets(0.001, 2, 14)

// slowBuckets are for work on the whole file: 0.1 s to 14 min, doubling.
var slowBuckets = prometheus.ExponentialBuckets(0.1, 2, 14)

// Durations are histograms of how long the disk took. Make one, give its Observe
// methods to store.Options, and it to Config.
type Durations struct {
	sync, checkpoint, defragment, snapshot prometheus.Histogram
	defragmenting                          prometheus.Gauge
}

// NewDurations returns empty histograms.
func NewDurations() *Durations {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	return &Durations{
		sync:       histogram("etcd_disk_wal_fsync_duration_seconds", "Time of each sync of the write-ahead log.", diskBuckets),
		checkpoint: histogram("etcd_disk_backend_commit_duration_seconds", "Time of each checkpoint's commit of the database file.", diskBuckets),
		defragment: histogram("etcd_disk_backend_defrag_duration_seconds", "Time of each defragmentation.", slowBuckets),
		snapshot:   histogram("etcd_disk_backend_snapshot_duration_seconds", "Time of each snapshot sent.", slowBuckets),
		defragmenting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "etcd_disk_defrag_inflight", Help: "Defragmentations running now.",
		}),
	}
}

// ObserveSync notes a sync of the log. It may be called from any goroutine.
func (d *Durations) ObserveSync(t time.Duration) { d.sync.Observe(t.Seconds()) }

// ObserveCheckpoint notes a commit of the tree. It may be called from any
// goroutine.
func (d *Durations) ObserveCheckpoint(t time.Duration) { d.checkpoint.Observe(t.Seconds()) }

// newRegistry has all metrics of the server and its process.
func (s *Server) newRegistry() (*prometheus.Registry, error) {
	d := s.cfg.Durations
	all := []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		d.sync, d.checkpoint, d.defragment, d.snapshot, d.defragmenting,
		newStoreCollector(s),
		newPrefixCollector(s.store),
		newCallsCollector(s.calls),
		newHealthCollector(s.health),
		fdCollector{},
	}
	if s.cfg.MetricsExtensive {
		all = append(all, s.calls.timeMethods())
	}
	reg := prometheus.NewRegistry()
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return reg, nil
}

func newMetricsHandler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
