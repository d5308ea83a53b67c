package etcdapi

import (
	"os"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
)

// healthCollector exports the results of the health pages.
type healthCollector struct {
	h                     *healthChecks
	ok, notOK, last, runs *prometheus.Desc
}

func newHealthCollector(h *healthChecks) *healthCollector {
	return &healthCollector{
		h:     h,
		ok:    prometheus.NewDesc("etcd_server_health_success", "Good answers of /health.", nil, nil),
		notOK: prometheus.NewDesc("etcd_server_health_failures", "Bad answers of /health.", nil, nil),
		last: prometheus.NewDesc("etcd_server_healthcheck", "Last result of a health check.",
			[]string{"type", "name"}, nil),
		runs: prometheus.NewDesc("etcd_server_healthchecks_total", "Results of health checks.",
			[]string{"type", "name", "status"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *healthCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.ok, c.notOK, c.last, c.runs} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A check that never ran has no last
// result.
func (c *healthCollector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	counter(c.ok, c.h.ok.Load())
	counter(c.notOK, c.h.notOK.Load())
	for _, n := range c.h.counts {
		passed, failed := n.passed.Load(), n.fails.Load()
		counter(c.runs, passed, n.page, n.name, "success")
		counter(c.runs, failed, n.page, n.name, "error")
		if passed+failed == 0 {
			continue
		}
		v := 0.0
		if n.healthy.Load() {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(c.last, prometheus.GaugeValue, v, n.page, n.name)
	}
}

var (
	fdUsed  = prometheus.NewDesc("os_fd_used", "File descriptors in use.", nil, nil)
	fdLimit = prometheus.NewDesc("os_fd_limit", "File descriptors that may be in use.", nil, nil)
)

// fdCollector exports how many file descriptors the process uses. Each client
// connection needs one.
type fdCollector struct{}

// Describe implements prometheus.Collector.
func (fdCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- fdUsed
	ch <- fdLimit
}

// Collect implements prometheus.Collector. Where the system does not tell, it
// exports nothing.
func (fdCollector) Collect(ch chan<- prometheus.Metric) {
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		ch <- prometheus.MustNewConstMetric(fdUsed, prometheus.GaugeValue, float64(len(open)))
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		ch <- prometheus.MustNewConstMetric(fdLimit, prometheus.GaugeValue, float64(limit.Cur))
	}
}
