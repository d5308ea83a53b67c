package store

import (
	"context"
	"fmt"
	"math"
	"testing"
)

// Ranges over more keys than one look at the index takes: TOP-7, RNG-6, RNG-12.
func TestRangeOverManyKeys(t *testing.T) {
	const keys = 3 * scanStep
	s := testStore(t)
	ops := make([]Op, keys)
	for i := range ops {
		ops[i] = putOp(fmt.Sprintf("k%05d", i), "x")
	}
	_, err := do(s, ops...)
	must(t, err)
	rev := del(t, s, between("k00000", "k00010")) // some dead entries
	put(t, s, "k00500", "newer")
	const live = keys - 10
	for _, limit := range []int64{0, 1, 500, scanStep, scanStep + 1, live - 1, live, live + 1, math.MaxInt64} {
		for _, at := range []int64{0, rev} {
			res, kvs, err := read(s, &RangeRequest{KeyRange: everything, Limit: limit, Revision: at})
			must(t, err)
			want := int64(live)
			if limit > 0 {
				want = min(live, limit)
			}
			if res.Count != live || int64(len(kvs)) != want || res.More != (want < live) {
				t.Errorf("limit %d at %d: %d keys, count %d, more %v", limit, at, len(kvs), res.Count, res.More)
			}
			if string(kvs[0].Key) != "k00010" {
				t.Errorf("the first key is %q", kvs[0].Key)
			}
		}
	}
	// A bound filters before the limit, and not the count.
	res, kvs, err := read(s, &RangeRequest{KeyRange: everything, Limit: 5, MinMod: rev + 1})
	must(t, err)
	if len(kvs) != 1 || res.Count != live || res.More {
		t.Errorf("%d keys, count %d, more %v", len(kvs), res.Count, res.More)
	}
	rd, err := s.NewReader(bg, 2)
	must(t, err)
	defer rd.Close()
	if n := rd.Count(everything); n != keys {
		t.Errorf("count at an old revision is %d", n)
	}
	if rd.Bytes(everything) <= 0 {
		t.Error("the range has no size")
	}
}

// RNG-20.
func TestCanceledContext(t *testing.T) {
	s := testStore(t)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := s.Range(ctx, &RangeRequest{KeyRange: everything})
	wantErr(t, err, context.Canceled)
	_, err = s.Txn(ctx, &TxnRequest{Success: []Op{putOp("a", "")}})
	wantErr(t, err, context.Canceled)
	_, err = s.Compact(ctx, 1, true)
	wantErr(t, err, context.Canceled)
	_, err = s.LeaseGrant(ctx, 0, 5)
	wantErr(t, err, context.Canceled)
	if s.Revision() != 1 || s.Status().CompactRevision != -1 || len(s.Leases()) != 0 {
		t.Error("a canceled request did something")
	}
}
