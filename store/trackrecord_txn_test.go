package store

import (
	"fmt"
	"testing"
)

// A range at a compacted revision within a transaction made the transaction fail on the
// member that the client was connected to, while the others applied its writes. Here
// nothing of it is applied, nor is it there after a restart.
func TestEtcd18667CompactedRangeInTxn(t *testing.T) {
	c := newCutStore(t, 1, 1<<20)
	s := c.Store
	for i := range 10 {
		put(t, s, "k", fmt.Sprint(i))
	}
	compactTo(t, s, 8)
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything})
	rev := s.Revision()
	grant(t, s, 1, 100)
	old := Op{Range: &RangeRequest{KeyRange: single("k"), Revision: 7}}
	leased := Op{Put: &PutRequest{Key: []byte("new"), Value: []byte("1"), Lease: 1}}
	for name, ops := range map[string][]Op{
		"after a put":  {leased, old},
		"before a put": {old, leased},
		"nested":       {leased, {Txn: &TxnRequest{Success: []Op{deleteOp(everything), old}}}},
		"twice nested": {{Txn: &TxnRequest{Success: []Op{leased, {Txn: &TxnRequest{Success: []Op{old}}}}}}},
	} {
		_, err := do(s, ops...)
		if wantErr(t, err, ErrCompacted); s.Revision() != rev {
			t.Errorf("%s: revision %d, it was %d", name, s.Revision(), rev)
		}
	}
	look := func(s *Store) {
		t.Helper()
		wantNoKey(t, s, "new")
		wantValue(t, s, "k", "9")
		leaseKeys(t, s, 1)
	}
	wantEvents(t, "events", drain(t, w))
	look(s)
	if got := put(t, s, "last", ""); got != rev+1 {
		t.Errorf("the next revision is %d, want %d", got, rev+1)
	}
	look(c.afterCut())
	must(t, c.Close())
	// What the log replays must not be judged anew: the revision is compacted by now.
	s = openStore(t, Options{Dir: t.TempDir()})
	put(t, s, "k", "1")
	_, err := do(s, putOp("new", "1"), Op{Range: &RangeRequest{KeyRange: single("k"), Revision: 2}})
	must(t, err)
	compactTo(t, s, s.Revision())
	s = reopen(t, s)
	wantValue(t, s, "new", "1")
}

// etcd did not count what a nested transaction writes against the quota.
func TestEtcd22139NestedTxnCountsAgainstQuota(t *testing.T) {
	const quota = 400_000
	large := putOp("large", string(make([]byte, quota)))
	nest := func(op Op) Op { return Op{Txn: &TxnRequest{Success: []Op{op}}} }
	never := Compare{KeyRange: single("a"), Target: CompareMod, Int: 99}
	for name, req := range map[string]*TxnRequest{
		"nested":           {Success: []Op{nest(large)}},
		"deep":             {Success: []Op{nest(nest(nest(large)))}},
		"failure branch":   {Compare: []Compare{never}, Failure: []Op{{Txn: &TxnRequest{Compare: []Compare{never}, Failure: []Op{large}}}}},
		"branch not taken": {Failure: []Op{nest(large)}},
		"beside others":    {Success: []Op{putOp("a", "1"), nest(putOp("b", string(make([]byte, quota/2)))), nest(putOp("c", string(make([]byte, quota/2))))}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Options{Dir: t.TempDir(), Quota: quota})
			s.SetMemberID(9)
			if cost := req.Cost(); cost < quota {
				t.Errorf("it costs %d", cost)
			}
			_, err := s.Txn(bg, req)
			wantErr(t, err, ErrNoSpace)
			if a := s.Alarms(); s.Revision() != 1 || len(a) != 1 || a[0] != (Alarm{9, NoSpace}) {
				t.Errorf("revision %d, alarms %v", s.Revision(), a)
			}
		})
	}
}
