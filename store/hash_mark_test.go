package store

import (
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/store/tree"
)

// TestHashOfMarkedRevision: a revision that was moved forward is marked by a record without a key
// (DSK-17). For etcd that is a key like any other, so its newest record is in the hash (MNT-3).
func TestHashOfMarkedRevision(t *testing.T) {
	dir := t.TempDir()
	tr, err := tree.Open(tree.Options{Path: filepath.Join(dir, treeName)})
	must(t, err)
	kv := tree.Record{Rev: Revision{Main: 2}, Value: tree.AppendKV(nil, []byte("a"), 2, 2, 1, []byte("1"), 0)}
	old, mark := tree.Record{Rev: Revision{Main: 100}}, tree.Record{Rev: Revision{Main: 1000}}
	must(t, tr.Apply(&tree.Batch{Put: []tree.Record{kv, old, mark}, ScheduledCompact: new(int64(1000))}))
	must(t, tr.Close())
	hash := func(records ...tree.Record) uint32 {
		b := []byte("key")
		for _, r := range records {
			b = append(r.Rev.AppendKey(b, r.Tombstone), r.Value...)
		}
		return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	}
	s := openStore(t, Options{Dir: dir})
	put(t, s, "b", "2")
	_, err = s.Compact(bg, 1001, true)
	must(t, err)
	s = reopen(t, s) // no hash of a compaction is stored then
	got, err := s.HashKV(bg, 0)
	must(t, err)
	b := tree.Record{Rev: Revision{Main: 1001}, Value: tree.AppendKV(nil, []byte("b"), 1001, 1001, 1, []byte("2"), 0)}
	if want := hash(kv, mark, b); got.Hash != want || got.Revision != 1001 {
		t.Errorf("got %+v, want hash %08x", got, want)
	}
}
