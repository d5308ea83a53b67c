package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Sequences that were observed on etcd.

// show writes records as key=value(version,create,mod).
func show(kvs []*mvccpb.KeyValue) string {
	var all []string
	for _, kv := range kvs {
		all = append(all, fmt.Sprintf("%s=%s(%d,%d,%d)", kv.Key, kv.Value, kv.Version, kv.CreateRevision, kv.ModRevision))
	}
	return strings.Join(all, " ")
}

func TestGoldenRevisionsAndCompaction(t *testing.T) {
	s := testStore(t)
	for i, op := range []Op{putOp("a", "1"), putOp("a", "2"), putOp("b", "1"), deleteOp(single("b")), putOp("a", "3"), putOp("c", "1"), putOp("b", "2")} {
		if rev, err := do(s, op); err != nil || rev != int64(i+2) {
			t.Fatalf("operation %d: revision %d, %v", i, rev, err)
		}
	}
	current, err := s.Compact(bg, 5, true)
	if err != nil || current != 8 {
		t.Fatalf("compact: %d, %v", current, err)
	}
	for _, rev := range []int64{5, 4, 0} {
		_, err := s.Compact(bg, rev, false)
		wantErr(t, err, ErrCompacted)
	}
	expect := func(rev int64, want string) {
		t.Helper()
		res, kvs, err := read(s, &RangeRequest{KeyRange: everything, Revision: rev})
		if err != nil || show(kvs) != want || res.Revision != 8 {
			t.Errorf("revision %d: %s, header %d, %v, want %s", rev, show(kvs), res.Revision, err, want)
		}
	}
	for rev := range int64(4) {
		_, _, err = read(s, &RangeRequest{KeyRange: everything, Revision: rev + 1})
		wantErr(t, err, ErrCompacted)
	}
	_, _, err = read(s, &RangeRequest{KeyRange: everything, Revision: 9})
	wantErr(t, err, ErrFutureRev)
	newest := "a=3(3,2,6) b=2(1,8,8) c=1(1,7,7)"
	expect(5, "a=2(2,2,3)")
	expect(6, "a=3(3,2,6)")
	expect(7, "a=3(3,2,6) c=1(1,7,7)")
	expect(8, newest)
	expect(0, newest)
	expect(-1, newest)
	compactTo(t, s, 8)
	expect(8, newest)
	_, err = do(s, Op{Range: &RangeRequest{KeyRange: everything, Revision: 7}})
	wantErr(t, err, ErrCompacted)
	_, err = do(s, Op{Range: &RangeRequest{KeyRange: everything, Revision: 8}})
	must(t, err)
	if rev := del(t, s, everything); rev != 9 {
		t.Errorf("delete has revision %d", rev)
	}
	compactTo(t, s, 9)
	if res, kvs, err := read(s, &RangeRequest{KeyRange: single("a")}); err != nil || len(kvs) > 0 || res.Revision != 9 {
		t.Errorf("range: %v, %v", kvs, err)
	}
}

func TestGoldenTxn(t *testing.T) {
	s := testStore(t)
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, Start: 3})
	next(t, w)
	r := put(t, s, "t/a", "1")
	all := rangeOp(between("t/", "t0"))
	expect := func(ops []Op, revision int64, want ...string) {
		t.Helper()
		res, err := s.Txn(bg, &TxnRequest{Success: ops})
		must(t, err)
		defer res.Close()
		var got []string
		for i, o := range res.Results {
			kvs, err := valuesOf(s, o.Items)
			must(t, err)
			got = append(got, fmt.Sprintf("%+d %d %s", o.Revision-r, o.Count, show(kvs)))
			if i < len(want) && got[i] != want[i] {
				t.Errorf("operation %d: %s, want %s", i, got[i], want[i])
			}
		}
		if len(got) != len(want) || res.Revision != revision {
			t.Errorf("%d results, revision %d, want %d and %d", len(got), res.Revision, len(want), revision)
		}
	}
	expect([]Op{putOp("t/b", "1"), all, putOp("t/c", "2"), all, deleteOp(single("t/a")), all, deleteOp(single("nope"))}, r+1,
		"+1 0 ", "+1 2 t/a=1(1,2,2) t/b=1(1,3,3)", "+1 0 ", "+1 3 t/a=1(1,2,2) t/b=1(1,3,3) t/c=2(1,3,3)", "+1 1 ",
		"+1 2 t/b=1(1,3,3) t/c=2(1,3,3)", "+1 0 ")
	m := next(t, w)
	var events []string
	for _, e := range m.Events {
		ev := decodeEvent(t, e, false)
		events = append(events, ev.Type.String()+" "+string(ev.Kv.Key))
	}
	if want := []string{"PUT t/b", "PUT t/c", "DELETE t/a"}; !slices.Equal(events, want) || m.Revision != r+1 {
		t.Errorf("events %q at %d, want %q", events, m.Revision, want)
	}
	expect([]Op{deleteOp(single("zzz")), putOp("t/p", ""), deleteOp(single("zzz"))}, r+2, "+1 0 ", "+2 0 ", "+2 0 ")
	b := rangeOp(single("t/b"))
	expect([]Op{b, putOp("t/b", "7"), b}, r+3, "+2 1 t/b=1(1,3,3)", "+3 0 ", "+3 1 t/b=7(2,3,5)")

	put(t, s, "n", "old")
	nested := Op{Txn: &TxnRequest{
		Compare: []Compare{{KeyRange: single("n"), Target: CompareValue, Value: []byte("new")}},
		Success: []Op{putOp("n2", "saw-new")}, Failure: []Op{putOp("n2", "saw-old")},
	}}
	_, err := do(s, putOp("n", "new"), nested)
	must(t, err)
	if _, kvs, _ := read(s, &RangeRequest{KeyRange: single("n2")}); len(kvs) != 1 || string(kvs[0].Value) != "saw-old" {
		t.Errorf("n2 is %v", kvs)
	}
	if rev := s.Revision(); true {
		res, err := s.Txn(bg, &TxnRequest{}) // TXN-11
		if err != nil || !res.Succeeded || len(res.Results) > 0 || res.Revision != rev {
			t.Errorf("empty transaction: %+v, %v", res, err)
		}
	}
}

func TestGoldenHash(t *testing.T) {
	s := testStore(t)
	expect := func(rev int64, hash uint32, compacted int64) {
		t.Helper()
		h, err := s.HashKV(bg, rev)
		if err != nil || h.Hash != hash || h.CompactRevision != compacted || h.Revision != s.Revision() {
			t.Errorf("hash at %d is %08x, compact revision %d, %v; want %08x, %d", rev, h.Hash, h.CompactRevision, err, hash, compacted)
		}
	}
	expect(0, 0x40a4756d, -1)
	for i, ops := range [][]Op{
		{putOp("a", "1")}, {putOp("a", "2")}, {putOp("b", "1")}, {deleteOp(single("b"))}, {putOp("c", "1")},
		{putOp("d", "1"), putOp("e", "2"), deleteOp(single("c"))}, {putOp("a", "3")}, {putOp("f", "9")},
	} {
		if i == 4 {
			must(t, s.Checkpoint(bg)) // half of it in the tree, half in the tail
		}
		_, err := do(s, ops...)
		must(t, err)
	}
	expect(0, 0x93041280, -1)
	expect(9, 0x93041280, -1)
	expect(5, 0x0f081052, -1)
	compactTo(t, s, 5)
	expect(0, 0xa92d9fe6, 5)
	expect(5, 0x0f081052, -1)
	expect(6, 0x60cac3f9, 5)
	_, err := s.HashKV(bg, 4)
	wantErr(t, err, ErrCompacted)
	_, err = s.HashKV(bg, 10)
	wantErr(t, err, ErrFutureRev)
	compactTo(t, s, 7)
	expect(0, 0x99831d03, 7)
	expect(7, 0x9b3ab8e8, 5)
	expect(8, 0x76423bfe, 7)
	put(t, s, "a", "x")
	del(t, s, single("a"))
	del(t, s, single("f"))
	expect(0, 0x500c7810, 7)
	compactTo(t, s, 10)
	expect(0, 0xad056c91, 10)
	expect(10, 0x80f969bb, 7)
	s = reopen(t, s)
	expect(0, 0xad056c91, 10)
}
