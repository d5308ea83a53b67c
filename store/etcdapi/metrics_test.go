package etcdapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
)

// metricsNames are those that dashboards and alerts for etcd read, and ours.
const metricsNames = `
etcd_server_has_leader etcd_server_is_leader etcd_server_leader_changes_seen_total
etcd_server_proposals_committed_total etcd_server_proposals_applied_total etcd_server_proposals_pending etcd_server_proposals_failed_total
etcd_server_id etcd_server_version etcd_server_go_version etcd_cluster_version etcd_server_quota_backend_bytes
etcd_mvcc_db_total_size_in_bytes etcd_mvcc_db_total_size_in_use_in_bytes etcd_mvcc_db_open_read_transactions
etcd_mvcc_range_total etcd_mvcc_put_total etcd_mvcc_delete_total etcd_mvcc_txn_total
etcd_debugging_mvcc_keys_total etcd_debugging_mvcc_current_revision etcd_debugging_mvcc_compact_revision
etcd_debugging_mvcc_watcher_total etcd_debugging_mvcc_watch_stream_total etcd_debugging_mvcc_slow_watcher_total
etcd_debugging_mvcc_events_total etcd_debugging_mvcc_db_compaction_keys_total etcd_debugging_mvcc_total_put_size_in_bytes
etcd_debugging_lease_granted_total etcd_debugging_lease_revoked_total etcd_debugging_lease_renewed_total etcd_debugging_server_lease_expired_total
etcd_disk_wal_fsync_duration_seconds etcd_disk_backend_commit_duration_seconds etcd_disk_backend_defrag_duration_seconds
etcd_disk_backend_snapshot_duration_seconds etcd_disk_defrag_inflight
etcd_network_client_grpc_received_bytes_total etcd_network_client_grpc_sent_bytes_total
etcd_server_slow_apply_total etcd_server_slow_read_indexes_total etcd_server_read_indexes_failed_total etcd_server_heartbeat_send_failures_total
etcd_server_health_success etcd_server_health_failures etcd_server_healthchecks_total etcd_server_client_requests_total
grpc_server_started_total grpc_server_handled_total grpc_server_msg_received_total grpc_server_msg_sent_total
process_resident_memory_bytes process_open_fds process_max_fds process_cpu_seconds_total go_goroutines os_fd_limit os_fd_used
tarn_progress_requests_total tarn_progress_answered_total tarn_progress_dropped_total tarn_progress_periodic_total
tarn_watches_canceled_by_compaction_total tarn_watch_streams tarn_leases tarn_alarm_nospace tarn_alarm_corrupt tarn_tail_bytes tarn_wal_bytes tarn_checkpoints_total
tarn_prefix_keys tarn_prefix_bytes tarn_prefix_stored_bytes tarn_compactions_total tarn_list_budget_bytes tarn_list_budget_used_bytes tarn_list_waiting tarn_list_waits_total`

func TestMetrics(t *testing.T) {
	d := NewDurations()
	st, err := store.Open(store.Options{Dir: t.TempDir(), ObserveSync: d.ObserveSync, ObserveCheckpoint: d.ObserveCheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s, addr := startServer(t, Config{Store: st, Durations: d})
	conn := dial(t, addr)
	kv := pb.NewKVClient(conn)
	if _, err := kv.Put(testContext(t), &pb.PutRequest{Key: []byte("a"), Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	openKeepAlives(t, conn, 3)
	scrape := func() string {
		t.Helper()
		resp, body := request(t, "GET", "http://"+addr+"/metrics", "")
		if resp.StatusCode != 200 {
			t.Fatalf("%s %s", resp.Status, body)
		}
		return body
	}
	body := scrape()
	t.Run("HTTP-5 names", func(t *testing.T) {
		for _, name := range strings.Fields(metricsNames) {
			if !strings.Contains(body, "# TYPE "+name+" ") {
				t.Errorf("no %s", name)
			}
		}
		for _, name := range []string{"etcd_network_peer_", "grpc_server_handling_seconds"} {
			if strings.Contains(body, name) {
				t.Errorf("%s is exported", name)
			}
		}
	})
	has := func(t *testing.T, lines ...string) {
		t.Helper()
		for _, l := range lines {
			if !strings.Contains(body, "\n"+l+"\n") {
				t.Errorf("no line %q", l)
			}
		}
	}
	t.Run("values", func(t *testing.T) {
		has(t,
			"etcd_server_has_leader 1",
			fmt.Sprintf(`etcd_server_id{server_id="%x"} 1`, s.memberID),
			`etcd_server_version{server_version="3.7.3"} 1`,
			"etcd_mvcc_put_total 1",
			"etcd_debugging_mvcc_keys_total 1",
			"tarn_alarm_nospace 0",
			"etcd_debugging_mvcc_current_revision 2",
			"etcd_debugging_mvcc_compact_revision -1",
			`grpc_server_handled_total{grpc_code="OK",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1`,
			`grpc_server_handled_total{grpc_code="OK",grpc_method="RangeStream",grpc_service="etcdserverpb.KV",grpc_type="server_stream"} 0`,
			`grpc_server_handled_total{grpc_code="Unavailable",grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 0`,
			`grpc_server_started_total{grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} 3`,
			`grpc_server_msg_sent_total{grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} 3`,
			`etcd_server_client_requests_total{client_api_version="unknown",type="unary"} 1`,
			`etcd_server_client_requests_total{client_api_version="unknown",type="stream"} 3`,
		)
		if strings.Contains(body, "\netcd_network_client_grpc_sent_bytes_total 0\n") {
			t.Error("sent bytes are not counted")
		}
		if strings.Contains(body, "\netcd_disk_wal_fsync_duration_seconds_count 0\n") {
			t.Error("the sync of the put was not observed")
		}
	})
	t.Run("buckets", func(t *testing.T) {
		d.ObserveCheckpoint(9 * time.Second)
		body = scrape()
		for _, le := range []string{"0.001", "0.002", "8.192", "+Inf"} {
			if !strings.Contains(body, `etcd_disk_wal_fsync_duration_seconds_bucket{le="`+le+`"}`) {
				t.Errorf("no bucket up to %s", le)
			}
		}
	})
	t.Run("health results", func(t *testing.T) {
		request(t, "GET", "http://"+addr+"/health", "")
		request(t, "GET", "http://"+addr+"/readyz", "")
		body = scrape()
		has(t, "etcd_server_health_success 1", "etcd_server_health_failures 0",
			`etcd_server_healthcheck{name="data_corruption",type="readyz"} 1`,
			`etcd_server_healthchecks_total{name="linearizable_read",status="success",type="readyz"} 1`,
			`etcd_server_healthchecks_total{name="serializable_read",status="error",type="livez"} 0`)
	})
	t.Run("extensive", func(t *testing.T) {
		_, addr := startServer(t, Config{MetricsExtensive: true})
		if _, err := pb.NewKVClient(dial(t, addr)).Range(testContext(t), &pb.RangeRequest{Key: []byte("a")}); err != nil {
			t.Fatal(err)
		}
		_, body = request(t, "GET", "http://"+addr+"/metrics", "")
		has(t, `grpc_server_handling_seconds_count{grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1`)
	})
}
