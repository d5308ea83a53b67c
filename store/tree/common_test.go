package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
	bolt "go.etcd.io/bbolt"
)

// failFS lets a test fail the calls of Defragment and Apply. A nil hook lets the
// call through.
type failFS struct {
	vfs.FS
	commit  func(name string, commit func() error) error
	rename  func() error
	syncDir func() error
	punch   func() error
}

func (f *failFS) Commit(name string, commit func() error) error {
	if f.commit != nil {
		return f.commit(name, commit)
	}
	return f.FS.Commit(name, commit)
}

func (f *failFS) Rename(from, to string) error {
	if f.rename != nil {
		if err := f.rename(); err != nil {
			return err
		}
	}
	return f.FS.Rename(from, to)
}

func (f *failFS) SyncDir(dir string) error {
	if f.syncDir != nil {
		if err := f.syncDir(); err != nil {
			return err
		}
	}
	return f.FS.SyncDir(dir)
}

func (f *failFS) PunchHole(name string, file *os.File, off, size int64) error {
	if f.punch != nil {
		if err := f.punch(); err != nil {
			return err
		}
	}
	return f.FS.PunchHole(name, file, off, size)
}

func testPath(t testing.TB) string { return filepath.Join(t.TempDir(), "tree.db") }

func openTest(t testing.TB, o Options) *Tree {
	t.Helper()
	tr, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func apply(t testing.TB, tr *Tree, b *Batch) {
	t.Helper()
	if err := tr.Apply(b); err != nil {
		t.Fatal(err)
	}
}

// puts returns n records of n keys from revision first on.
func puts(first int64, n, valueLen int) []Record {
	records := make([]Record, n)
	value := bytes.Repeat([]byte{'v'}, valueLen)
	for i := range records {
		rev := first + int64(i)
		key := fmt.Appendf(nil, "/registry/pods/default/pod-%08d", rev)
		records[i] = Record{Rev: Revision{Main: rev}, Value: AppendKV(nil, key, rev, rev, 1, value, 0)}
	}
	return records
}

// content is what a tree holds in bucket key, by raw key.
type content map[string]string

func readContent(t testing.TB, tr *Tree) content {
	t.Helper()
	c := content{}
	v := tr.View()
	defer v.Close()
	err := v.Scan(Revision{}, func(rev Revision, dead bool, value []byte) bool {
		c[string(rev.AppendKey(nil, dead))] = string(value)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c content) equal(t testing.TB, want content) {
	t.Helper()
	if !maps.Equal(c, want) {
		t.Fatalf("the tree has %d records that differ from the model's %d", len(c), len(want))
	}
}

func noFindings(t testing.TB, tr *Tree) {
	t.Helper()
	if f := findings(t, tr); len(f) > 0 {
		t.Fatalf("Check: %q", f)
	}
}

func findings(t testing.TB, tr *Tree) (found []string) {
	t.Helper()
	if err := tr.Check(context.Background(), func(s string) { found = append(found, s) }); err != nil {
		t.Fatal(err)
	}
	return found
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// history makes the batches of a store: puts, deletes and compactions of a few keys.
type history struct {
	rnd     *rand.Rand
	rev     int64
	seq     uint64
	keys    map[string]lineage
	records content // what the tree has after the last batch
	order   []string
	given   int64 // to the file system
}

func newHistory(rnd *rand.Rand) *history {
	return &history{rnd: rnd, rev: 1, keys: map[string]lineage{}, records: content{}}
}

func (h *history) batch(n int) *Batch {
	b := &Batch{}
	for range n {
		h.rev++
		for sub := range int64(1 + h.rnd.IntN(3)) {
			b.Put = append(b.Put, h.change(Revision{h.rev, sub}))
		}
	}
	for _, r := range b.Put {
		k := string(r.Rev.AppendKey(nil, r.Tombstone))
		h.records[k] = string(r.Value)
		h.order = append(h.order, k)
	}
	h.seq += uint64(n)
	b.Seq = new(h.seq)
	return b
}

// change makes one record; keys of different subs differ, as in a transaction.
func (h *history) change(rev Revision) Record {
	key := fmt.Sprintf("key-%d-%d", h.rnd.IntN(30), rev.Sub)
	last, known := h.keys[key]
	if known && !last.dead && h.rnd.IntN(4) == 0 {
		h.keys[key] = lineage{dead: true}
		return Record{Rev: rev, Tombstone: true, Value: AppendKV(nil, []byte(key), 0, 0, 0, nil, 0)}
	}
	next := lineage{create: rev.Main, version: 1}
	if known && !last.dead {
		next = lineage{create: last.create, version: last.version + 1}
	}
	h.keys[key] = next
	value := bytes.Repeat([]byte{byte('a' + h.rnd.IntN(26))}, h.rnd.IntN(3000))
	return Record{Rev: rev, Value: AppendKV(nil, []byte(key), next.create, rev.Main, next.version, value, h.rnd.Int64N(3))}
}

// compaction removes the oldest records, as far as they are not a key's newest.
func (h *history) compaction() *Batch {
	newest := map[string]string{}
	for _, k := range h.order {
		kv, _ := DecodeKV([]byte(h.records[k]))
		newest[string(kv.Key)] = k
	}
	b := &Batch{}
	cut := h.rnd.IntN(len(h.order) + 1)
	h.order = slices.DeleteFunc(slices.Clone(h.order), func(k string) bool {
		rev, dead, _ := ParseKey([]byte(k))
		kv, _ := DecodeKV([]byte(h.records[k]))
		if k >= h.order[min(cut, len(h.order)-1)] || newest[string(kv.Key)] == k {
			return false
		}
		delete(h.records, k)
		b.Delete = append(b.Delete, DeadRecord{rev, dead})
		return true
	})
	h.seq++
	b.Seq, b.ScheduledCompact, b.FinishedCompact = new(h.seq), new(h.rev), new(h.rev)
	return b
}

func copyTo(t testing.TB, tr *Tree, path string) {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.WriteTo(f); err != nil || n != s.Size() {
		t.Fatalf("snapshot: %d of %d bytes: %v", n, s.Size(), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// inBolt changes a file behind the tree's back, and leaves it without its list of
// free pages, as etcd does.
func inBolt(t testing.TB, path string, fn func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

type counter struct{ n atomic.Int64 }

func (c *counter) observe(time.Duration) { c.n.Add(1) }

func openFile(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
