package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store"
)

// metricsPageOf is a page with n syncs, of which slow took at most 0.512 s and the others 1 ms.
func metricsPageOf(n, slow int) string {
	return fmt.Sprintf(`# HELP x
process_start_time_seconds 1.7e+09
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} %d
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.032"} %d
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.512"} %d
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} %d
etcd_disk_wal_fsync_duration_seconds_sum %g
etcd_disk_wal_fsync_duration_seconds_count %d
tarn_compactions_total 3
`, n-slow, n-slow, n, n, float64(n)*0.001, n)
}

func TestDoctorOfDisk(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want weight
		text string
	}{
		"none":     {"", weightUnknown, "does not tell"},
		"few":      {metricsPageOf(5, 0), weightNote, "only 5 sync(s)"},
		"fast":     {metricsPageOf(1000, 1), weightOK, "1ms on average, and at most 1ms for 99 of 100 (of 1000)"},
		"slow":     {strings.ReplaceAll(metricsPageOf(1000, 50), "0.512", "0.256"), weightWarning, "at most 256ms"},
		"unusable": {metricsPageOf(1000, 50), weightProblem, "at most 512ms"},
		"beyond":   {strings.Replace(metricsPageOf(1000, 50), `le="0.512"} 1000`, `le="0.512"} 950`, 1), weightProblem, "above all that is measured"},
	} {
		f := &findings{area: "store"}
		judgeSyncs(f, readServerMetrics(strings.NewReader(c.page)))
		if all := f.all(); len(all) != 1 || all[0].Weight != c.want || !strings.Contains(all[0].Found, c.text) {
			t.Errorf("%s: %+v", name, all)
		}
	}
	m := readServerMetrics(strings.NewReader(metricsPageOf(1, 0)))
	if up := m.uptime(time.Unix(1.7e9+60, 0)); up != time.Minute || math.IsNaN(m.within(0.99)) {
		t.Errorf("up for %s", up)
	}
	for compacted, c := range map[int64]struct {
		revision int64
		want     weight
	}{-1: {2 * manyRevisions, weightWarning}, 2 * manyRevisions: {2*manyRevisions + 100, weightOK}} {
		f := &findings{area: "store"}
		judgeCompaction(f, &statusReport{Revision: c.revision, CompactRevision: &compacted}, m)
		if all := f.all(); all[0].Weight != c.want {
			t.Errorf("compacted %d: %+v", compacted, all)
		}
	}
}

func TestDoctorOfGrowth(t *testing.T) {
	f := &findings{area: "store"}
	judgeGrowth(f, []store.PrefixTotals{
		{Prefix: "/registry/events/", Keys: 20000, RecordBytes: 1 << 20}, {Prefix: "/registry/pods/", Keys: 30, RecordBytes: 1 << 30},
		{Prefix: "/registry/leases/", Keys: 5, RecordBytes: 5000},
	}, 2<<30)
	wantFinding(t, f.all(), "store", "growth", weightWarning, "/registry/events/: 20000 key(s)")
	wantFinding(t, f.all(), "store", "growth", weightWarning, "/registry/pods/: 30 key(s), 1 GiB")
	// A second: 0.7 without elections, 1.2 with those of Kubernetes, 2.2 with all of k3s; a hundred nodes write 10.
	for _, c := range []struct {
		writes uint64
		nodes  int64
		up     time.Duration
		want   int
	}{{2520, 1, time.Hour, 0}, {4320, 1, time.Hour, 1}, {7920, 1, time.Hour, 1}, {37800, 100, time.Hour, 0}, {4320, 0, time.Hour, 1}, {500, 1, time.Minute, 0}} {
		f := &findings{area: "store"}
		judgeElections(f, []store.PrefixTotals{{Prefix: leasesPrefix, Writes: c.writes}, {Prefix: nodesPrefix, Keys: c.nodes}}, c.up)
		if len(f.all()) != c.want {
			t.Errorf("%+v: %+v", c, f.all())
		}
	}
}

func TestDoctorOfRoom(t *testing.T) {
	for percent, want := range map[float64]weight{10: weightOK, 80: weightWarning, 97: weightProblem} {
		f := &findings{area: "store"}
		judgeRoom(f, &statusReport{QuotaBytes: 1 << 30, InUseBytes: int64(percent / 100 * (1 << 30)), QuotaPercent: percent})
		wantFinding(t, f.all(), "store", "quota", want, "in use of 1 GiB")
	}
	f := &findings{area: "store"}
	judgeRoom(f, &statusReport{QuotaBytes: 1 << 30, InUseBytes: 1 << 30, QuotaPercent: 100, Alarms: []string{"NOSPACE", "CORRUPT"}})
	wantFinding(t, f.all(), "store", "alarm", weightProblem, "NOSPACE: puts are refused because the quota is used up")
	wantFinding(t, f.all(), "store", "alarm", weightProblem, "CORRUPT: writes are refused")
}
