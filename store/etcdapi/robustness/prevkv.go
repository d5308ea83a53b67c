package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

// compactionCall is a compaction that was asked for at a time.
type compactionCall struct {
	at       time.Duration
	revision int64 // the highest of those asked for until then
}

// checkPrevKV looks for previous values that are missing, or that nobody asked for.
// etcd's validation only compares those that are there, as etcd can lose one to a
// compaction. Here that is allowed only for an event that was compacted itself.
func checkPrevKV(clients []report.ClientReport) error {
	calls := compactionCalls(clients)
	for _, c := range clients {
		for _, w := range c.Watch {
			for _, r := range w.Responses {
				for _, e := range r.Events {
					if why := wrongPrev(w.Request, e, compactedAt(calls, r.Time)); why != "" {
						return fmt.Errorf("prev_kv is %s: client %d, %s of %q at revision %d", why, c.ClientID, e.Type, e.Key, e.Revision)
					}
				}
			}
		}
	}
	return nil
}

// wrongPrev tells what is wrong with an event's previous value, or "". compacted is up to
// which revision a compaction can have come.
func wrongPrev(request model.WatchRequest, e model.WatchEvent, compacted int64) string {
	switch {
	case e.PrevValue != nil && !request.WithPrevKV:
		return "there, though nobody asked for it"
	case e.PrevValue == nil && request.WithPrevKV && !e.IsCreate && e.Revision > compacted:
		return "missing"
	}
	return ""
}

// compactionCalls returns the requests for compactions by time.
func compactionCalls(clients []report.ClientReport) (calls []compactionCall) {
	for _, c := range clients {
		for _, op := range c.KeyValue {
			if request := op.Input.(model.EtcdRequest); request.Type == model.Compact {
				calls = append(calls, compactionCall{time.Duration(op.Call), request.Compact.Revision})
			}
		}
	}
	slices.SortFunc(calls, func(a, b compactionCall) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(calls); i++ {
		calls[i].revision = max(calls[i].revision, calls[i-1].revision)
	}
	return calls
}

// compactedAt returns up to which revision a compaction can have come at a time.
func compactedAt(calls []compactionCall, at time.Duration) int64 {
	i, _ := slices.BinarySearchFunc(calls, at, func(c compactionCall, t time.Duration) int { return cmp.Compare(c.at, t) })
	if i == 0 {
		return math.MinInt64
	}
	return calls[i-1].revision
}
