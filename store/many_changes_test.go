package store

import (
	"fmt"
	"slices"
	"testing"
)

// fillMany puts n keys many/000000 … in transactions of 100.
func fillMany(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := 0; i < n; i += 100 {
		var ops []Op
		for k := i; k < min(i+100, n); k++ {
			ops = append(ops, putOp(fmt.Sprintf("many/%06d", k), "v"))
		}
		_, err := do(s, ops...)
		must(t, err)
	}
}

var many = KeyRange{Key: []byte("many/"), End: []byte("many0")}

// A revision with more changes than are made into events at once goes to each watcher from
// the history: whole, in order, and to nobody else.
func TestManyChangesAtOneRevision(t *testing.T) {
	const n = manyChangesFrom + 1000
	s := testStore(t)
	fillMany(t, s, n)
	woken := 0
	w := s.NewWatchStream(func() { woken++ })
	t.Cleanup(w.Close)
	other := watchStream(t, s)
	start := s.Revision()
	watch(t, w, WatchRequest{KeyRange: many, PrevKV: true})
	future := watch(t, w, WatchRequest{KeyRange: single("many/000000"), Start: start + 2})
	watch(t, other, WatchRequest{KeyRange: single("else")})
	next(t, w)
	next(t, w)
	nothing(t, w)
	next(t, other)
	nothing(t, other)

	res, err := s.Txn(bg, &TxnRequest{Success: []Op{putOp("else", "1"), deleteOp(many)}})
	must(t, err)
	res.Close()
	if res.Results[1].Count != n || woken == 0 {
		t.Fatalf("deleted %d; the stream was woken %d times", res.Results[1].Count, woken)
	}
	w.RequestProgress() // must not overtake the events
	m := next(t, w)
	if len(m.Events) != n || m.Kind != WatchEvents {
		t.Fatalf("message of kind %d with %d events", m.Kind, len(m.Events))
	}
	var keys []string
	for _, e := range m.Events {
		ev := decodeEvent(t, e, true)
		if ev.PrevKv == nil || string(ev.PrevKv.Value) != "v" || ev.Kv.ModRevision != start+1 {
			t.Fatalf("event %v", ev)
		}
		keys = append(keys, string(ev.Kv.Key))
	}
	if !slices.IsSorted(keys) || keys[n-1] != fmt.Sprintf("many/%06d", n-1) {
		t.Errorf("the last of the keys is %q", keys[n-1])
	}
	nothing(t, w)
	if m := next(t, other); len(m.Events) != 1 {
		t.Errorf("the other watcher got %+v", m)
	}
	put(t, s, "many/000000", "new") // both are synced again
	got := map[int64]int{}
	for range 2 {
		m := next(t, w)
		got[m.ID] += len(m.Events)
	}
	if got[future] != 1 || len(got) != 2 {
		t.Errorf("events by watch: %v", got)
	}
	st, err := s.NewReader(bg, 0)
	must(t, err)
	defer st.Close()
	if n := st.Count(many); n != 1 {
		t.Errorf("%d keys are counted", n)
	}
}

// Compaction removes records in the order of revisions, as they lie in the tree.
func TestCompactionGoesInOrder(t *testing.T) {
	s := testStore(t)
	for i := range 2000 {
		put(t, s, fmt.Sprintf("k%d", i*7%10), "v")
	}
	s.mem.floor = s.Revision()
	var dead []record
	for at, more := 0, true; more; {
		dead, at, more = s.pruneStep(s.Revision(), at, dead)
	}
	if len(dead) != 1990 {
		t.Fatalf("%d records are gone", len(dead))
	}
	if !slices.IsSortedFunc(dead, func(a, b record) int { return int(a.main - b.main) }) {
		t.Error("the records are not in the order of their revisions")
	}
}
