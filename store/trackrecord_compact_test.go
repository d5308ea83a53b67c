package store

import (
	"fmt"
	"strconv"
	"testing"
)

// kine kept the revision of compact_rev_key and dropped its value: kube-apiserver read an
// empty text where a number has to be, and its compactor stood still.
func TestKine604EmptyCompactRevKey(t *testing.T) {
	const key = "compact_rev_key"
	// tick is what the compactor of kube-apiserver does: it puts the current revision and
	// returns the one before, or what it finds instead.
	tick := func(s *Store, version int64) (ok bool, found string) {
		t.Helper()
		res, err := s.Txn(bg, &TxnRequest{
			Compare: []Compare{{KeyRange: single(key), Target: CompareVersion, Int: version}},
			Success: []Op{putOp(key, strconv.FormatInt(s.Revision(), 10))},
			Failure: []Op{rangeOp(single(key))},
		})
		must(t, err)
		defer res.Close()
		if res.Succeeded {
			return true, ""
		}
		kvs, err := valuesOf(s, res.Results[0].Items)
		must(t, err)
		if len(kvs) != 1 {
			t.Fatalf("found %v", kvs)
		}
		return false, string(kvs[0].Value)
	}
	c := newCutStore(t, 1, 1<<20)
	s := c.Store
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: single(key)})
	next(t, w)
	want := ""
	for version := range int64(4) {
		put(t, s, "object", "x")
		want = fmt.Sprint(s.Revision())
		if ok, found := tick(s, version); !ok {
			t.Fatalf("version %d: found %q", version, found)
		}
		ev := decodeEvent(t, next(t, w).Events[0], false)
		if string(ev.Kv.Value) != want || ev.Kv.Version != version+1 {
			t.Errorf("the watch got %v, want value %s", ev.Kv, want)
		}
	}
	for _, step := range []func(){
		func() { s = c.afterCut() },
		func() { compactTo(t, s, s.Revision()-1) },
		func() { must(t, s.Checkpoint(bg)) },
		func() { put(t, s, "object", "y"); compactTo(t, s, s.Revision()) }, // the key's record is below
		func() { s = reopen(t, s) },
		func() { must(t, c.Close()) },
	} {
		step()
		wantValue(t, s, key, want)
		if ok, found := tick(s, 0); ok || found != want {
			t.Errorf("another compactor finds %q, want %s", found, want)
		}
	}
	// A key that an older writer left without a value is read as it is, and replaced.
	put(t, s, key, "")
	if _, found := tick(s, 0); found != "" {
		t.Errorf("found %q, want an empty value", found)
	}
	want = fmt.Sprint(s.Revision())
	if ok, _ := tick(s, 5); !ok {
		t.Error("the empty value is not replaced")
	}
	wantValue(t, s, key, want)
}

// kine sent events of a watch that had begun below the compact revision, and then the error; and a fast
// writer made it send one message for each event.
func TestKine238WatchBelowCompactRevision(t *testing.T) {
	s := openStore(t, Options{Dir: crashDir(t)})
	const n = 1300
	for i := range n {
		put(t, s, fmt.Sprint("k", i%7), fmt.Sprint(i))
	}
	const compacted = 100
	compactTo(t, s, compacted)
	for _, start := range []int64{1, 2, compacted - 1} {
		w := watchStream(t, s)
		watch(t, w, WatchRequest{KeyRange: everything, Start: start})
		next(t, w)
		if m := next(t, w); m.Kind != WatchCanceled || m.CompactRevision != compacted {
			t.Errorf("start %d: got a message of kind %d with %d events, compact revision %d", start, m.Kind, len(m.Events), m.CompactRevision)
		}
		put(t, s, "a", "")
		nothing(t, w)
	}
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, Start: compacted})
	next(t, w)
	events, messages := 0, 0
	for want := int(s.Revision()) - compacted + 1; events < want; messages++ {
		events += len(next(t, w).Events)
	}
	if messages > 3 {
		t.Errorf("%d events came in %d messages", events, messages)
	}
}
