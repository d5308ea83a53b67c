package etcdapi

import (
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarn-kv/tarn/store"
)

// storeFigures is what a scrape reads from the store.
type storeFigures struct {
	store.Status
	store.Counters
	budget BudgetStats
	json   BudgetStats // of the gateway
	turns  TurnStats
	shared uint64
	alarms []store.Alarm
}

// alarm is 1 while an alarm of this type is on, 0 otherwise.
func (f *storeFigures) alarm(t store.AlarmType) float64 {
	if slices.ContainsFunc(f.alarms, func(a store.Alarm) bool { return a.Type == t }) {
		return 1
	}
	return 0
}

// storeMetric is one number of storeFigures under the name it is exported with.
type storeMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*storeFigures) float64
}

// storeCollector exports the store's state and counters, and a few constants that
// are true of any single node.
type storeCollector struct {
	s       *Server
	metrics []storeMetric
	fixed   []prometheus.Metric
}

func newStoreCollector(s *Server) *storeCollector {
	c := &storeCollector{s: s}
	c.addSizes()
	c.addKeySpace()
	c.addWatches()
	c.addLeases()
	c.addOwn()
	c.addConstants()
	return c
}

func (c *storeCollector) add(kind prometheus.ValueType, name, help string, value func(*storeFigures) float64) {
	c.metrics = append(c.metrics, storeMetric{prometheus.NewDesc(name, help, nil, nil), kind, value})
}

func (c *storeCollector) gauge(name, help string, value func(*storeFigures) float64) {
	c.add(prometheus.GaugeValue, name, help, value)
}

func (c *storeCollector) counter(name, help string, value func(*storeFigures) uint64) {
	c.add(prometheus.CounterValue, name, help, func(f *storeFigures) float64 { return float64(value(f)) })
}

func (c *storeCollector) addSizes() {
	c.gauge("etcd_server_quota_backend_bytes", "Quota of the store.", func(f *storeFigures) float64 { return float64(f.Quota) })
	c.gauge("etcd_mvcc_db_total_size_in_bytes", "Size of the database file.", func(f *storeFigures) float64 { return float64(f.Size) })
	c.gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Bytes in use of it.", func(f *storeFigures) float64 { return float64(f.InUse) })
	c.gauge("etcd_mvcc_db_open_read_transactions", "Reads that keep old records from being removed.", func(f *storeFigures) float64 { return float64(f.OpenReads) })
	for _, name := range []string{"etcd_server_proposals_committed_total", "etcd_server_proposals_applied_total"} {
		c.gauge(name, "Changes logged.", func(f *storeFigures) float64 { return float64(f.Index) })
	}
}

func (c *storeCollector) addKeySpace() {
	c.counter("etcd_mvcc_range_total", "Ranges read.", func(f *storeFigures) uint64 { return f.Ranges })
	c.counter("etcd_mvcc_put_total", "Keys put.", func(f *storeFigures) uint64 { return f.Puts })
	c.counter("etcd_mvcc_delete_total", "Keys deleted.", func(f *storeFigures) uint64 { return f.Deletes })
	c.counter("etcd_mvcc_txn_total", "Transactions.", func(f *storeFigures) uint64 { return f.Txns })
	c.gauge("etcd_debugging_mvcc_keys_total", "Live keys.", func(f *storeFigures) float64 { return float64(f.Keys) })
	c.gauge("etcd_debugging_mvcc_current_revision", "Newest revision.", func(f *storeFigures) float64 { return float64(f.Revision) })
	c.gauge("etcd_debugging_mvcc_compact_revision", "Compact revision, -1 before the first.", func(f *storeFigures) float64 { return float64(f.CompactRevision) })
	c.gauge("etcd_debugging_auth_revision", "Changes of users and roles; 1 before the first.", func(*storeFigures) float64 { return float64(c.s.store.Auth().Revision()) })
	c.counter("etcd_debugging_mvcc_db_compaction_keys_total", "Records removed by compaction.", func(f *storeFigures) uint64 { return f.CompactedRecords })
	for _, name := range []string{"etcd_mvcc_total_put_size_in_bytes", "etcd_debugging_mvcc_total_put_size_in_bytes"} {
		c.gauge(name, "Bytes of keys and values put.", func(f *storeFigures) float64 { return float64(f.PutBytes) })
	}
}

func (c *storeCollector) addWatches() {
	c.gauge("etcd_debugging_mvcc_watcher_total", "Watches.", func(f *storeFigures) float64 { return float64(f.Watchers) })
	c.gauge("etcd_debugging_mvcc_watch_stream_total", "Watch streams.", func(f *storeFigures) float64 { return float64(f.Streams) })
	c.gauge("etcd_debugging_mvcc_pending_events_total", "Events queued for clients that have not read them yet.", func(f *storeFigures) float64 { return float64(f.PendingEvents) })
	c.gauge("etcd_debugging_mvcc_slow_watcher_total", "Watches that are catching up.", func(f *storeFigures) float64 { return float64(f.SlowWatchers) })
	c.counter("etcd_debugging_mvcc_events_total", "Events sent to watches.", func(f *storeFigures) uint64 { return f.Events })
}

func (c *storeCollector) addLeases() {
	c.counter("etcd_debugging_lease_granted_total", "Leases granted.", func(f *storeFigures) uint64 { return f.LeasesGranted })
	c.counter("etcd_debugging_lease_revoked_total", "Leases revoked.", func(f *storeFigures) uint64 { return f.LeasesRevoked })
	c.counter("etcd_debugging_lease_renewed_total", "Leases renewed.", func(f *storeFigures) uint64 { return f.LeasesRenewed })
	c.counter("etcd_debugging_server_lease_expired_total", "Leases expired.", func(f *storeFigures) uint64 { return f.LeasesExpired })
}

// addOwn adds what only this server has.
func (c *storeCollector) addOwn() {
	c.counter("tarn_progress_requests_total", "Progress requests of clients on watch streams.", func(f *storeFigures) uint64 { return f.ProgressRequested })
	c.counter("tarn_progress_answered_total", "Progress requests that were answered.", func(f *storeFigures) uint64 { return f.ProgressAnswered })
	c.counter("tarn_progress_dropped_total", "Progress requests not answered because a watch of the stream had not caught up.", func(f *storeFigures) uint64 { return f.ProgressDropped })
	c.counter("tarn_progress_periodic_total", "Progress messages sent without being asked.", func(f *storeFigures) uint64 { return f.ProgressPeriodic })
	c.counter("tarn_watches_canceled_by_compaction_total", "Watches that fell below the compact revision.", func(f *storeFigures) uint64 { return f.WatchesCanceledByCompaction })
	c.gauge("tarn_watch_streams", "Watch streams.", func(f *storeFigures) float64 { return float64(f.Streams) })
	c.gauge("tarn_alarm_nospace", "1 while the NOSPACE alarm is on.", func(f *storeFigures) float64 { return f.alarm(store.NoSpace) })
	c.gauge("tarn_alarm_corrupt", "1 while the CORRUPT alarm is on.", func(f *storeFigures) float64 { return f.alarm(store.Corrupt) })
	if wait := c.s.cfg.DiskWait; wait != nil {
		c.gauge("tarn_disk_waiting_seconds", "How long the oldest file operation has been under way; 0 if none is.", func(*storeFigures) float64 { return wait().Seconds() })
	}
	c.gauge("tarn_leases", "Leases.", func(f *storeFigures) float64 { return float64(f.Leases) })
	c.gauge("tarn_tail_bytes", "Bytes of changes since the last checkpoint, in memory.", func(f *storeFigures) float64 { return float64(f.TailBytes) })
	c.gauge("tarn_wal_bytes", "Size of the write-ahead log.", func(f *storeFigures) float64 { return float64(f.WALBytes) })
	c.counter("tarn_checkpoints_total", "Checkpoints.", func(f *storeFigures) uint64 { return f.Checkpoints })
	c.gauge("tarn_tree_allocated_bytes", "Disk space that the database file takes.", func(f *storeFigures) float64 { return float64(f.Allocated) })
	c.counter("tarn_tree_given_back_bytes_total", "Bytes of the database file given back to the file system after compactions.", func(f *storeFigures) uint64 { return f.BytesGivenBack })
	c.counter("tarn_compactions_total", "Compactions.", func(f *storeFigures) uint64 { return f.Compactions })
	c.gauge("tarn_list_budget_bytes", "Bytes of large answers that may be in memory at once.", func(f *storeFigures) float64 { return float64(f.budget.Size) })
	c.gauge("tarn_list_budget_used_bytes", "Bytes of them that are in memory now.", func(f *storeFigures) float64 { return float64(f.budget.InUse) })
	c.gauge("tarn_list_waiting", "Large reads that wait for the list budget now.", func(f *storeFigures) float64 { return float64(f.budget.Waiting + f.json.Waiting) })
	c.counter("tarn_lists_shared_total", "Large lists that were sent with the bytes of another one for the same range.", func(f *storeFigures) uint64 { return f.shared })
	c.gauge("tarn_list_send_waiting", "Large answers that wait for their turn to be sent now.", func(f *storeFigures) float64 { return float64(f.turns.Waiting) })
	c.counter("tarn_list_send_waits_total", "Large answers that have waited for their turn to be sent.", func(f *storeFigures) uint64 { return f.turns.Waits })
	c.counter("tarn_list_waits_total", "Large reads that have waited for the list budget.", func(f *storeFigures) uint64 { return f.budget.Waits + f.json.Waits })
}

func (c *storeCollector) addConstants() {
	fix := func(kind prometheus.ValueType, name, help string, v float64, labels prometheus.Labels) {
		c.fixed = append(c.fixed, prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, v))
	}
	fix(prometheus.GaugeValue, "etcd_server_has_leader", "Always 1 on a single node.", 1, nil)
	fix(prometheus.GaugeValue, "etcd_server_is_leader", "Always 1 on a single node.", 1, nil)
	fix(prometheus.CounterValue, "etcd_server_leader_changes_seen_total", "Always 1 on a single node.", 1, nil)
	fix(prometheus.GaugeValue, "etcd_server_proposals_pending", "Always 0 on a single node.", 0, nil)
	for _, name := range []string{
		"etcd_server_proposals_failed_total", "etcd_server_slow_apply_total", "etcd_server_slow_read_indexes_total",
		"etcd_server_read_indexes_failed_total", "etcd_server_heartbeat_send_failures_total",
	} {
		fix(prometheus.CounterValue, name, "Always 0 on a single node.", 0, nil)
	}
	id := strconv.FormatUint(c.s.memberID, 16)
	fix(prometheus.GaugeValue, "etcd_server_id", "The member's ID.", 1, prometheus.Labels{"server_id": id})
	fix(prometheus.GaugeValue, "etcd_server_version", "The etcd version whose behaviour the server has.", 1, prometheus.Labels{"server_version": etcdVersion})
	fix(prometheus.GaugeValue, "etcd_cluster_version", "The cluster version that goes with it.", 1, prometheus.Labels{"cluster_version": etcdClusterMinor})
	fix(prometheus.GaugeValue, "etcd_server_go_version", "The Go version the server was built with.", 1, prometheus.Labels{"server_go_version": runtime.Version()})
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
	for _, m := range c.fixed {
		ch <- m.Desc()
	}
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	f := &storeFigures{
		Status: c.s.store.Status(), Counters: c.s.store.Counters(), alarms: c.s.store.Alarms(),
		budget: c.s.budget.stats(), json: c.s.gateway.budget.stats(), shared: c.s.shared.count(), turns: c.s.turns.stats(),
	}
	for _, m := range c.metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(f))
	}
	for _, m := range c.fixed {
		ch <- m
	}
}
