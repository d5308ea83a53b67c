package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
)

const (
	// Above these a prefix is named, as the server's log does.
	manyKeys     = 10000
	quotaShare   = 10 // a tenth of the quota
	shownLargest = 3

	leasesPrefix = "/registry/leases/"
	nodesPrefix  = "/registry/minions/"
	// settled is how long a server must run for its writes to tell something.
	settled = 5 * time.Minute
)

// judgePrefixes names who fills the store and who writes.
func (o *doctorOptions) judgePrefixes(ctx context.Context, f *findings, c *client, r *statusReport, m serverMetrics) {
	var page etcdapi.PrefixesPage
	if err := c.page(ctx, etcdapi.PrefixesPath, &page); err != nil {
		f.unknown("growth", "this is for tarn serve; where that has users, give one with the role root (--user)", "the totals of prefixes can not be had: %v", o.server.explain(context.WithoutCancel(ctx), err))
		return
	}
	judgeGrowth(f, page.Prefixes, r.QuotaBytes)
	judgeElections(f, page.Prefixes, m.uptime(o.machine.now()))
}

func judgeGrowth(f *findings, prefixes []store.PrefixTotals, quota int64) {
	sorted := slices.Clone(prefixes)
	slices.SortStableFunc(sorted, func(a, b store.PrefixTotals) int { return cmp.Compare(b.RecordBytes, a.RecordBytes) })
	var shown []string
	for i, p := range sorted {
		text := fmt.Sprintf("%s: %d key(s), %s stored", p.Prefix, p.Keys, roughBytes(p.RecordBytes))
		if large := quota > 0 && p.RecordBytes > quota/quotaShare; large || p.Keys > manyKeys {
			f.warning("growth", "see docs/running.md, \"One prefix grows\": stop what writes it, and delete in pages", "%s", text)
		} else if i < shownLargest {
			shown = append(shown, text)
		}
	}
	switch {
	case len(shown) > 0:
		f.ok("growth", "the largest are %s", strings.Join(shown, "; "))
	case len(sorted) == 0:
		f.note("growth", "the store is empty")
	}
}

// judgeElections finds the writes with which components elect one among one: each of them one every 2 s.
func judgeElections(f *findings, prefixes []store.PrefixTotals, up time.Duration) {
	if up < settled {
		return
	}
	var writes uint64
	nodes := int64(1)
	for _, p := range prefixes {
		switch p.Prefix {
		case leasesPrefix:
			writes = p.Writes
		case nodesPrefix:
			nodes = max(1, p.Keys)
		}
	}
	rate := float64(writes) / up.Seconds()
	// Each node and the API server renew a lease every 10 s, and k3s one of its own every 2 s.
	usual := float64(nodes+1)/10 + 0.5
	if rate > usual+0.3 {
		f.warning("elections", "kubectl get leases -A tells whose they are. With one server nobody else can be elected: tarn k3s setup switches that off in k3s, "+
			"and --leader-elect=false in other components; with several servers all is well",
			"leases are written %.1f times a second, and for %d node(s) %.1f are usual: components elect a leader", rate, nodes, usual)
	}
}
