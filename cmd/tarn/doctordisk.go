package main

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	syncHistogram = "etcd_disk_wal_fsync_duration_seconds"
	// enoughSyncs are what a statement about a disk needs.
	enoughSyncs = 100
	// Of a hundred syncs 99 should be faster: kube-apiserver's requests wait for them.
	slowSync     = 0.032
	verySlowSync = 0.5
	// manyRevisions are more than a busy cluster of one node makes between two compactions.
	manyRevisions = 500_000
)

// serverMetrics is what the page of metrics tells.
type serverMetrics struct {
	plain   map[string]float64
	buckets []bucket // of the syncs, in the order of the page: rising
}

// bucket counts the syncs that took at most so many seconds.
type bucket struct{ seconds, count float64 }

func readServerMetrics(page io.Reader) serverMetrics {
	var m serverMetrics
	var text strings.Builder
	for lines := bufio.NewScanner(page); lines.Scan(); {
		line := lines.Text()
		text.WriteString(line + "\n")
		rest, ok := strings.CutPrefix(line, syncHistogram+`_bucket{le="`)
		le, count, found := strings.Cut(rest, `"} `)
		if !ok || !found {
			continue
		}
		s, err1 := strconv.ParseFloat(le, 64) // reads +Inf, too
		n, err2 := strconv.ParseFloat(count, 64)
		if err1 == nil && err2 == nil {
			m.buckets = append(m.buckets, bucket{s, n})
		}
	}
	m.plain = parseMetrics(strings.NewReader(text.String()))
	return m
}

// uptime is how long the server runs, 0 if that is not known.
func (m serverMetrics) uptime(now time.Time) time.Duration {
	started, ok := m.plain["process_start_time_seconds"]
	if !ok {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(int64(started*1000))))
}

// within is the bound that the part p of all syncs kept.
func (m serverMetrics) within(p float64) float64 {
	if len(m.buckets) == 0 {
		return math.NaN()
	}
	all := m.buckets[len(m.buckets)-1].count
	for _, b := range m.buckets {
		if b.count >= all*p {
			return b.seconds
		}
	}
	return math.Inf(1)
}

// judgeSyncs says how long writes wait for the disk, by the syncs that the server has made: nothing is
// written to find it out.
func judgeSyncs(f *findings, m serverMetrics) {
	n := m.plain[syncHistogram+"_count"]
	switch {
	case len(m.buckets) == 0:
		f.unknown("disk", "is it tarn serve? Its metrics have the times", "the server does not tell how long its syncs take")
		return
	case n < enoughSyncs:
		f.note("disk", "only %.0f sync(s) since the server was started: too few to tell how fast the disk is", n)
		return
	}
	mean := time.Duration(m.plain[syncHistogram+"_sum"] / n * float64(time.Second))
	worst := m.within(0.99)
	bound := "above all that is measured"
	if !math.IsInf(worst, 0) {
		bound = "at most " + roundTime(time.Duration(worst*float64(time.Second)))
	}
	const do = "see what else uses the disk; on ZFS with hard disks a log device (SLOG) with power-loss protection helps, see docs/zfs.md"
	text := "a sync takes %s on average, and %s for 99 of 100 (of %.0f)"
	switch {
	case worst > verySlowSync:
		f.problem("disk", do, text+": leases run out and k3s ends itself", roundTime(mean), bound, n)
	case worst > slowSync:
		f.warning("disk", do, text+": each write waits for one", roundTime(mean), bound, n)
	default:
		f.ok("disk", text, roundTime(mean), bound, n)
	}
}

// judgeCompaction looks whether old versions pile up.
func judgeCompaction(f *findings, r *statusReport, m serverMetrics) {
	if r.CompactRevision == nil {
		return
	}
	kept := r.Revision - max(0, *r.CompactRevision)
	text := "never"
	if *r.CompactRevision > 0 {
		text = "up to revision " + strconv.FormatInt(*r.CompactRevision, 10)
	}
	since := m.plain["tarn_compactions_total"]
	if kept > manyRevisions {
		f.warning("history", "kube-apiserver compacts every 5 minutes: is it running, with --etcd-compaction-interval not 0? Else set auto-compaction-retention",
			"%d revisions are not compacted (compacted: %s; %.0f compaction(s) since the start)", kept, text, since)
		return
	}
	f.ok("history", "compacted: %s, %d revision(s) ago; %.0f compaction(s) since the start", text, kept, since)
}
