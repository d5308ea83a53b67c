package difftest

import (
	"encoding/base64"
	"fmt"
	"testing"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestHTTP(t *testing.T) {
	get := func(name, path string, headers ...string) Step { return Step{name, HTTP("GET", path, "", headers...)} }
	post := func(name, path, body string) Step { return Step{name, Gateway(path, body)} }
	port := func(name, path string, headers ...string) Step { return Step{name, MetricsPort(path, headers...)} }
	suite.Run(t, []Case{
		{Name: "client port", Steps: []Step{
			get("HTTP-1 version", "/version", "Content-Type"),
			{"HTTP-1 version POST", HTTP("POST", "/version", "", "Allow")},
			get("HTTP-2 health", "/health", "Content-Type"),
			get("HTTP-2 health exclude", "/health?exclude=NOSPACE&exclude=CORRUPT"),
			get("HTTP-2 health serializable", "/health?serializable=true"),
			get("HTTP-2 health linearizable", "/health?serializable=false"),
			{"HTTP-2 health POST", HTTP("POST", "/health", "", "Allow")},
			get("HTTP-3 livez", "/livez", "Content-Type"), get("HTTP-3 livez verbose", "/livez?verbose"),
			get("HTTP-3 livez exclude", "/livez?verbose&exclude=serializable_read"), get("HTTP-3 one check", "/livez/serializable_read"),
			get("HTTP-3 unknown check", "/livez/nonsense"), get("HTTP-3 exclude unknown", "/livez?exclude=nonsense"),
			{"HTTP-3 livez POST", HTTP("POST", "/livez", "", "Allow")},
			get("HTTP-4 readyz", "/readyz"),
			get("HTTP-4 data_corruption", "/readyz/data_corruption"), get("HTTP-4 linearizable_read", "/readyz/linearizable_read"),
			get("HTTP-4 non_learner", "/readyz/non_learner"), get("HTTP-4 serializable_read", "/readyz/serializable_read"),
			{"HTTP-5 metrics", StatusOnly(HTTP("GET", "/metrics", ""))},
			{"HTTP-6 vars", StatusOnly(HTTP("GET", "/debug/vars", ""))},
			{"HTTP-6 pprof is off", StatusOnly(HTTP("GET", "/debug/pprof/", ""))},
			{"HTTP-7 options", HTTP("OPTIONS", "/version", "", "Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers")},
			get("HTTP-7 origin", "/version", "Access-Control-Allow-Origin"),
			{"unknown path", StatusOnly(HTTP("GET", "/nonsense", ""))},
			{"root", StatusOnly(HTTP("GET", "/", ""))},
			{"v2 is gone", StatusOnly(HTTP("GET", "/v2/keys", ""))},
		}},
		{Name: "metrics port", Metrics: true, Steps: []Step{
			port("HTTP-9 health", "/health", "Content-Type"), port("HTTP-9 livez", "/livez"), port("HTTP-9 readyz", "/readyz"),
			port("HTTP-9 old kubeadm liveness", "/health?exclude=NOSPACE&serializable=true"), port("HTTP-9 old kubeadm startup", "/health?serializable=false"),
			{"HTTP-9 metrics", StatusOnly(MetricsPort("/metrics"))},
			{"HTTP-9 no version", StatusOnly(MetricsPort("/version"))}, {"HTTP-9 no gateway", StatusOnly(MetricsPort("/v3/kv/range"))},
		}},
		{Name: "gateway", Steps: []Step{
			post("GW-3 empty range", "/v3/kv/range", `{"key":"`+b64("a")+`"}`),
			post("GW-2 put", "/v3/kv/put", `{"key":"`+b64("a")+`","value":"`+b64("1")+`"}`),
			post("GW-2 put with a number as text", "/v3/kv/put", `{"key":"`+b64("b")+`","value":"`+b64("1")+`","lease":"0"}`),
			post("GW-2 snake case", "/v3/kv/range", `{"key":"`+b64("a")+`","range_end":"`+b64("z")+`","limit":"1"}`),
			post("GW-2 camel case", "/v3/kv/range", `{"key":"`+b64("a")+`","rangeEnd":"`+b64("z")+`","keysOnly":true}`),
			post("GW-2 enum by name", "/v3/kv/range", `{"key":"`+b64("a")+`","range_end":"`+b64("z")+`","sort_order":"DESCEND"}`),
			post("GW-2 enum by number", "/v3/kv/range", `{"key":"`+b64("a")+`","range_end":"`+b64("z")+`","sort_order":2}`),
			post("GW-2 unknown field", "/v3/kv/range", `{"key":"`+b64("a")+`","nonsense":1}`),
			post("GW-4 no key", "/v3/kv/range", `{}`), post("GW-4 future", "/v3/kv/range", `{"key":"`+b64("a")+`","revision":99}`),
			{"GW-4 bad JSON", StatusOnly(Gateway("/v3/kv/range", `{`))}, {"GW-4 bad base64", StatusOnly(Gateway("/v3/kv/range", `{"key":"*"}`))},
			post("GW-1 txn", "/v3/kv/txn", fmt.Sprintf(`{"compare":[{"key":"%s","target":"VERSION","result":"EQUAL","version":"1"}],"success":[{"request_put":{"key":"%s","value":"%s"}},{"requestRange":{"key":"%s"}}]}`, b64("a"), b64("c"), b64("3"), b64("c"))),
			post("GW-1 delete", "/v3/kv/deleterange", `{"key":"`+b64("a")+`","prev_kv":true}`),
			post("GW-1 compact", "/v3/kv/compaction", `{"revision":"3","physical":true}`), post("GW-4 compact again", "/v3/kv/compaction", `{"revision":"3"}`),
			post("GW-1 grant", "/v3/lease/grant", `{"ID":"77","TTL":"300"}`), post("GW-1 keepalive", "/v3/lease/keepalive", `{"ID":"77"}`),
			post("GW-1 ttl", "/v3/lease/timetolive", `{"ID":"77","keys":true}`), post("GW-1 ttl old path", "/v3/kv/lease/timetolive", `{"ID":"77"}`),
			post("GW-1 leases", "/v3/lease/leases", `{}`), post("GW-1 leases old path", "/v3/kv/lease/leases", `{}`),
			post("GW-1 revoke", "/v3/lease/revoke", `{"ID":"77"}`), post("GW-4 revoke unknown", "/v3/kv/lease/revoke", `{"ID":"77"}`),
			post("GW-1 members", "/v3/cluster/member/list", `{}`), post("GW-4 member remove", "/v3/cluster/member/remove", `{"ID":"42"}`),
			post("GW-4 member promote", "/v3/cluster/member/promote", `{"ID":"42"}`), post("GW-4 member update", "/v3/cluster/member/update", `{"ID":"42"}`),
			post("GW-4 member add", "/v3/cluster/member/add", `{}`),
			post("GW-1 status", "/v3/maintenance/status", `{}`), post("GW-1 alarm", "/v3/maintenance/alarm", `{}`), post("GW-1 alarm by name", "/v3/maintenance/alarm", `{"action":"GET","alarm":"NOSPACE"}`),
			post("GW-1 defragment", "/v3/maintenance/defragment", `{}`), post("GW-1 hash", "/v3/maintenance/hash", `{}`), post("GW-1 hashkv", "/v3/maintenance/hashkv", `{}`),
			post("GW-1 transfer", "/v3/maintenance/transfer-leadership", `{}`), post("GW-1 downgrade", "/v3/maintenance/downgrade", `{"action":"CANCEL"}`),
			{"GW-1 GW-5 snapshot", StatusOnly(Gateway("/v3/maintenance/snapshot", `{}`))},
			post("GW-1 auth status", "/v3/auth/status", `{}`), post("GW-1 auth enable", "/v3/auth/enable", `{}`), post("GW-1 auth disable", "/v3/auth/disable", `{}`),
			post("GW-1 authenticate", "/v3/auth/authenticate", `{"name":"x","password":"y"}`),
			post("GW-1 v3beta", "/v3beta/kv/range", `{"key":"`+b64("b")+`"}`),
			get("GW-1 GET", "/v3/kv/range"), {"RS-12 no range stream", StatusOnly(Gateway("/v3/kv/rangestream", `{}`))}, {"unknown gateway path", StatusOnly(Gateway("/v3/nonsense", `{}`))},
		}},
		{Name: "gateway auth", Steps: []Step{
			post("GW-1 user add", "/v3/auth/user/add", `{"name":"u","password":"p"}`), post("GW-1 user get", "/v3/auth/user/get", `{"name":"u"}`),
			post("GW-1 user list", "/v3/auth/user/list", `{}`), post("GW-1 user changepw", "/v3/auth/user/changepw", `{"name":"u","password":"q"}`),
			post("GW-1 role add", "/v3/auth/role/add", `{"name":"r"}`), post("GW-1 role get", "/v3/auth/role/get", `{"role":"r"}`), post("GW-1 role list", "/v3/auth/role/list", `{}`),
			post("GW-1 role grant", "/v3/auth/role/grant", `{"name":"r","perm":{"permType":"READ","key":"`+b64("a")+`"}}`), post("GW-1 user grant", "/v3/auth/user/grant", `{"user":"u","role":"r"}`),
			post("GW-1 user revoke", "/v3/auth/user/revoke", `{"name":"u","role":"r"}`), post("GW-1 role revoke", "/v3/auth/role/revoke", `{"role":"r","key":"`+b64("a")+`"}`),
			post("GW-1 role delete", "/v3/auth/role/delete", `{"role":"r"}`), post("GW-1 user delete", "/v3/auth/user/delete", `{"name":"u"}`),
		}},
		{Name: "gateway lock and election", Steps: []Step{
			post("lease for lock", "/v3/lease/grant", `{"ID":"5","TTL":"300"}`), post("GW-1 lock", "/v3/lock/lock", `{"name":"`+b64("l")+`","lease":"5"}`),
			post("GW-4 lock with an unknown lease", "/v3/lock/lock", `{"name":"`+b64("l")+`","lease":"6"}`),
			post("GW-1 unlock", "/v3/lock/unlock", `{"key":"`+b64("l/5")+`"}`), post("GW-4 no key", "/v3/lock/unlock", `{}`),
			post("GW-4 no leader", "/v3/election/leader", `{"name":"`+b64("e")+`"}`),
			post("GW-1 campaign", "/v3/election/campaign", `{"name":"`+b64("e")+`","lease":"5","value":"`+b64("me")+`"}`),
			post("GW-1 leader", "/v3/election/leader", `{"name":"`+b64("e")+`"}`),
			post("GW-1 proclaim", "/v3/election/proclaim", `{"leader":{"key":"`+b64("e/5")+`","rev":"4","lease":"5"},"value":"`+b64("you")+`"}`),
			{"GW-1 GW-5 observe", FirstLine("/v3/election/observe", `{"name":"`+b64("e")+`"}`)},
			post("GW-1 resign", "/v3/election/resign", `{"leader":{"key":"`+b64("e/5")+`","rev":"4","lease":"5"}}`),
			post("GW-4 proclaim without leader", "/v3/election/proclaim", `{}`), post("GW-4 resign without leader", "/v3/election/resign", `{}`),
			post("GW-1 v3beta", "/v3beta/election/leader", `{"name":"`+b64("e")+`"}`),
		}},
		{Name: "metrics", Steps: []Step{{"9.2 families", MetricFamilies(metricNames...)}}},
	})
}

// metricNames are the metrics that dashboards, alerts and tools read.
var metricNames = []string{
	"etcd_server_has_leader", "etcd_server_is_leader", "etcd_server_leader_changes_seen_total",
	"etcd_server_proposals_committed_total", "etcd_server_proposals_applied_total", "etcd_server_proposals_pending", "etcd_server_proposals_failed_total",
	"etcd_server_id", "etcd_server_version", "etcd_server_go_version", "etcd_cluster_version", "etcd_server_quota_backend_bytes",
	"etcd_mvcc_db_total_size_in_bytes", "etcd_mvcc_db_total_size_in_use_in_bytes", "etcd_mvcc_db_open_read_transactions",
	"etcd_mvcc_range_total", "etcd_mvcc_put_total", "etcd_mvcc_delete_total", "etcd_mvcc_txn_total",
	"etcd_debugging_mvcc_keys_total", "etcd_debugging_mvcc_current_revision", "etcd_debugging_mvcc_compact_revision",
	"etcd_debugging_mvcc_watcher_total", "etcd_debugging_mvcc_watch_stream_total", "etcd_debugging_mvcc_slow_watcher_total",
	"etcd_debugging_mvcc_pending_events_total", "etcd_debugging_mvcc_events_total", "etcd_debugging_mvcc_db_compaction_keys_total",
	"etcd_debugging_mvcc_total_put_size_in_bytes",
	"etcd_debugging_lease_granted_total", "etcd_debugging_lease_revoked_total", "etcd_debugging_lease_renewed_total", "etcd_debugging_server_lease_expired_total",
	"etcd_disk_wal_fsync_duration_seconds", "etcd_disk_backend_commit_duration_seconds", "etcd_disk_backend_defrag_duration_seconds",
	"etcd_disk_backend_snapshot_duration_seconds", "etcd_disk_defrag_inflight",
	"etcd_network_client_grpc_received_bytes_total", "etcd_network_client_grpc_sent_bytes_total",
	"etcd_server_slow_apply_total", "etcd_server_slow_read_indexes_total", "etcd_server_read_indexes_failed_total", "etcd_server_heartbeat_send_failures_total",
	"etcd_server_health_success", "etcd_server_health_failures", "etcd_server_client_requests_total",
	"etcd_server_apply_duration_seconds", "etcd_server_request_duration_seconds", "etcd_server_range_duration_seconds",
	"grpc_server_started_total", "grpc_server_handled_total", "grpc_server_msg_received_total", "grpc_server_msg_sent_total",
	"process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_cpu_seconds_total", "os_fd_limit", "os_fd_used",
}
