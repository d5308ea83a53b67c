package store

import (
	"fmt"
	"testing"
)

// The allocations of the hot paths: a guard against growth, not a target. They are
// not counted under the race detector, which allocates by itself.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector")
	}
	s := testStore(t)
	req := &TxnRequest{Success: []Op{putOp("a", "some value")}}
	write := func() {
		res, err := s.Txn(bg, req)
		must(t, err)
		res.Close()
	}
	write()
	if n := testing.AllocsPerRun(200, write); n > 9 {
		t.Errorf("a put allocates %v times", n)
	}
	const watchers = 100
	var streams []*WatchStream
	for range watchers {
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: single("a"), PrevKV: true})
		streams = append(streams, w)
	}
	drain := func() {
		for _, w := range streams {
			for {
				m, ok, err := w.Next()
				must(t, err)
				if !ok {
					break
				}
				for _, e := range m.Events {
					e.Encoded(true)
				}
				w.Sent(m)
			}
		}
	}
	drain()
	n := testing.AllocsPerRun(200, func() {
		write()
		drain()
	})
	if n > 50+watchers {
		t.Errorf("a put with %d watchers allocates %v times", watchers, n)
	}
}

// An answer is put together without an allocation per key.
func TestRangeAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector")
	}
	s := testStore(t)
	ops := make([]Op, 500)
	for i := range ops {
		ops[i] = putOp(fmt.Sprintf("k%03d", i), "some value")
	}
	_, err := do(s, ops...)
	must(t, err)
	n := testing.AllocsPerRun(50, func() {
		res, err := s.Range(bg, &RangeRequest{KeyRange: everything})
		must(t, err)
		_, err = s.AppendValues(make([]byte, 0, 64<<10), res.Items, 2)
		must(t, err)
		res.Close()
	})
	if n > 30 {
		t.Errorf("a range of %d keys allocates %v times", len(ops), n)
	}
}
