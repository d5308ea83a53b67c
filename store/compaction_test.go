package store

import (
	"fmt"
	"testing"
)

// CMP-3, CMP-7: what was compacted stays so, whatever an earlier compaction that had to
// wait for a reader does later.
func TestCompactRevisionNeverFalls(t *testing.T) {
	s := testStore(t)
	for i := range 10 {
		put(t, s, "a", fmt.Sprint(i))
	}
	first, err := s.NewReader(bg, 3)
	must(t, err)
	compactTo(t, s, 5)
	second, err := s.NewReader(bg, 8)
	must(t, err)
	defer second.Close()
	compactTo(t, s, 9)
	must(t, s.Checkpoint(bg))
	first.Close() // the compaction at 5 ends; the one at 9 waits for the second reader
	s.compact.wait()
	meta, err := s.tree.Meta()
	must(t, err)
	if meta.ScheduledCompact != 9 || meta.FinishedCompact != 5 {
		t.Errorf("scheduled %d, finished %d, want 9 and 5", meta.ScheduledCompact, meta.FinishedCompact)
	}
	s = reopen(t, s)
	s.compact.wait()
	_, _, err = read(s, &RangeRequest{KeyRange: single("a"), Revision: 8})
	wantErr(t, err, ErrCompacted)
	if meta, _ = s.tree.Meta(); meta.FinishedCompact != 9 {
		t.Errorf("finished %d after the restart, want 9", meta.FinishedCompact)
	}
}

func compactTo(t *testing.T, s *Store, rev int64) {
	t.Helper()
	_, err := s.Compact(bg, rev, true)
	must(t, err)
}

// A reader sees its revision until it is closed, and nothing of it is kept longer.
func TestCompactionWaitsForReaders(t *testing.T) {
	s := testStore(t)
	for i := range 10 {
		put(t, s, "a", fmt.Sprint(i))
	}
	must(t, s.Checkpoint(bg))
	rd, err := s.NewReader(bg, 4)
	must(t, err)
	compactTo(t, s, 9)
	_, err = s.NewReader(bg, 8)
	wantErr(t, err, ErrCompacted)
	kvs, err := valuesOf(s, rd.Scan(everything).Next(nil, 10, 1<<20))
	must(t, err)
	if len(kvs) != 1 || string(kvs[0].Value) != "2" {
		t.Errorf("reader at 4 has %v", kvs)
	}
	rd.Close()
	rd.Close() // no harm
	s.compact.wait()
	s.mem.mu.RLock()
	e := s.mem.index.get("a")
	older := len(e.older)
	s.mem.mu.RUnlock()
	if older != 2 || s.pins.count() != 0 {
		t.Errorf("%d older records (want 9 and 10 besides 11), %d pins", older, s.pins.count())
	}
}

// A result may be closed after the store: what it kept is then removed after the next start.
func TestReaderOutlivesStore(t *testing.T) {
	s := testStore(t)
	for i := range 5 {
		put(t, s, "a", fmt.Sprint(i))
	}
	rd, err := s.NewReader(bg, 2)
	must(t, err)
	compactTo(t, s, 5)
	must(t, s.Close())
	rd.Close()
	s.compact.wait()
	must(t, s.Err())
	s = reopen(t, s)
	s.compact.wait()
	if meta, err := s.tree.Meta(); err != nil || meta.FinishedCompact != 5 {
		t.Errorf("finished %d, %v, want 5", meta.FinishedCompact, err)
	}
}

// V-4: a transaction that changes a key twice, at the very revision that is compacted.
func TestCompactionAtDoubleChange(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "1")
	res, err := s.Txn(bg, &TxnRequest{Success: []Op{putOp("a", "2"), rangeOp(single("a")), deleteOp(everything), putOp("b", "3")}})
	must(t, err)
	defer res.Close()
	compactTo(t, s, res.Revision)
	kvs, err := valuesOf(s, res.Results[1].Items)
	must(t, err)
	if len(kvs) != 1 || string(kvs[0].Value) != "2" {
		t.Errorf("the range within the transaction has %v", kvs)
	}
	must(t, s.Err())
}

// The previous records of a result stay until it is closed.
func TestCompactionKeepsPreviousRecords(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "1")
	put(t, s, "b", "2")
	must(t, s.Checkpoint(bg))
	res, err := s.Txn(bg, &TxnRequest{Success: []Op{
		{Put: &PutRequest{Key: []byte("a"), PrevKV: true}}, {Delete: &DeleteRequest{KeyRange: single("b"), PrevKV: true}},
	}})
	must(t, err)
	defer res.Close()
	compactTo(t, s, res.Revision)
	for i, want := range []string{"1", "2"} {
		kvs, err := valuesOf(s, res.Results[i].Items)
		if must(t, err); len(kvs) != 1 || string(kvs[0].Value) != want {
			t.Errorf("operation %d: previous record %v, want value %s", i, kvs, want)
		}
	}
}

// REV-6: the revision does not fall when all that had it is gone.
func TestRevisionSurvivesCompaction(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "1")
	rev := del(t, s, everything)
	compactTo(t, s, rev)
	put(t, s, "b", "1")
	rev = del(t, s, everything)
	compactTo(t, s, rev)
	for range 2 {
		s = reopen(t, s)
		if got := put(t, s, "c", ""); got != rev+1 {
			t.Errorf("revision %d after a restart, want %d", got, rev+1)
		}
		rev = del(t, s, everything)
		compactTo(t, s, rev)
	}
}

// CMP-1.
func TestCompactBounds(t *testing.T) {
	s := testStore(t)
	for _, c := range []struct {
		rev  int64
		want error
	}{{0, nil}, {2, ErrFutureRev}, {-1, ErrCompacted}, {1, nil}, {1, ErrCompacted}, {0, ErrCompacted}} {
		_, err := s.Compact(bg, c.rev, false)
		if (err == nil) != (c.want == nil) || c.want != nil && !errorsIs(err, c.want) {
			t.Errorf("compact %d: got %v, want %v", c.rev, err, c.want)
		}
	}
}
