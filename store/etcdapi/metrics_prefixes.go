package etcdapi

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarn-kv/tarn/store"
)

// metricPrefixes is how many prefixes have metrics of their own: those that fill the store most.
const metricPrefixes = 50

// prefixCollector exports what there is of each prefix. While access control is on it exports nothing:
// names of keys are for those who may read them, and metrics ask nobody who he is.
type prefixCollector struct {
	store                        *store.Store
	keys, bytes, records, writes *prometheus.Desc
}

func newPrefixCollector(st *store.Store) *prefixCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"prefix"}, nil)
	}
	return &prefixCollector{
		store:   st,
		keys:    desc("tarn_prefix_keys", "Live keys of a prefix."),
		bytes:   desc("tarn_prefix_bytes", "Bytes of the live keys' newest records."),
		records: desc("tarn_prefix_stored_bytes", "Bytes of all records of a prefix that are not compacted."),
		writes:  desc("tarn_prefix_writes_total", "Keys put and deleted since the start."),
	}
}

// Describe implements prometheus.Collector.
func (c *prefixCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.keys, c.bytes, c.records, c.writes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *prefixCollector) Collect(ch chan<- prometheus.Metric) {
	if c.store.Auth().Enabled() {
		return
	}
	top, rest := largestPrefixes(c.store.Prefixes(), metricPrefixes)
	for _, t := range top {
		c.gauges(ch, t)
		ch <- prometheus.MustNewConstMetric(c.writes, prometheus.CounterValue, float64(t.Writes), t.Prefix)
	}
	// Which prefixes are the rest changes, so their writes are no counter.
	c.gauges(ch, rest)
}

func (c *prefixCollector) gauges(ch chan<- prometheus.Metric, t store.PrefixTotals) {
	ch <- prometheus.MustNewConstMetric(c.keys, prometheus.GaugeValue, float64(t.Keys), t.Prefix)
	ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(t.Bytes), t.Prefix)
	ch <- prometheus.MustNewConstMetric(c.records, prometheus.GaugeValue, float64(t.RecordBytes), t.Prefix)
}

// largestPrefixes returns the n prefixes that take the most bytes, and what the others, and the keys of no
// prefix, come to.
func largestPrefixes(all []store.PrefixTotals, n int) (top []store.PrefixTotals, rest store.PrefixTotals) {
	slices.SortStableFunc(all, func(x, y store.PrefixTotals) int { return cmp.Compare(y.RecordBytes, x.RecordBytes) })
	rest.Prefix = store.OtherKeys
	for _, t := range all {
		if t.Prefix != store.OtherKeys && len(top) < n {
			top = append(top, t)
			continue
		}
		rest.Keys += t.Keys
		rest.Bytes += t.Bytes
		rest.RecordBytes += t.RecordBytes
	}
	return top, rest
}
