package etcdapi

import (
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// callsCollector exports calls. Every method is there from the start: started
// minus handled of a stream method is the number of open streams.
type callsCollector struct {
	calls                            *calls
	started, handled, received, sent *prometheus.Desc
	receivedBytes, sentBytes         *prometheus.Desc
	clients                          *prometheus.Desc
}

func newCallsCollector(c *calls) *callsCollector {
	method := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"grpc_type", "grpc_service", "grpc_method"}, more...), nil)
	}
	return &callsCollector{
		calls:         c,
		started:       method("grpc_server_started_total", "Calls started."),
		handled:       method("grpc_server_handled_total", "Calls completed.", "grpc_code"),
		received:      method("grpc_server_msg_received_total", "Messages received."),
		sent:          method("grpc_server_msg_sent_total", "Messages sent."),
		receivedBytes: prometheus.NewDesc("etcd_network_client_grpc_received_bytes_total", "Bytes of messages from clients.", nil, nil),
		sentBytes:     prometheus.NewDesc("etcd_network_client_grpc_sent_bytes_total", "Bytes of messages to clients.", nil, nil),
		clients: prometheus.NewDesc("etcd_server_client_requests_total", "Requests per version of the client's API.",
			[]string{"type", "client_api_version"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *callsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.started, c.handled, c.received, c.sent, c.receivedBytes, c.sentBytes, c.clients} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *callsCollector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, m := range c.calls.methods {
		counter(c.started, m.started.Load(), m.typ, m.service, m.method)
		counter(c.received, m.received.Load(), m.typ, m.service, m.method)
		counter(c.sent, m.sent.Load(), m.typ, m.service, m.method)
		for code := range m.handled {
			counter(c.handled, m.handled[code].Load(), m.typ, m.service, m.method, codes.Code(code).String())
		}
	}
	counter(c.receivedBytes, c.calls.receivedBytes.Load())
	counter(c.sentBytes, c.calls.sentBytes.Load())
	c.calls.versionsMu.RLock()
	defer c.calls.versionsMu.RUnlock()
	for k, n := range c.calls.versions {
		counter(c.clients, n.Load(), k.typ, k.version)
	}
}

// timeMethods switches the histogram of handling times on. It is called before
// the server serves.
func (c *calls) timeMethods() prometheus.Collector {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "grpc_server_handling_seconds",
		Help:    "Time from the start of a call until it was answered.",
		Buckets: prometheus.DefBuckets,
	}, []string{"grpc_type", "grpc_service", "grpc_method"})
	for _, m := range c.methods {
		m.seconds = seconds.WithLabelValues(m.typ, m.service, m.method)
	}
	return seconds
}
