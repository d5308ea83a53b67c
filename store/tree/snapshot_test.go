package tree

import (
	"hash/crc32"
	"maps"
	"path/filepath"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func TestSnapshotWhileApplying(t *testing.T) {
	h := newHistory(seeded(t))
	dir := t.TempDir()
	tr := openTest(t, Options{Path: filepath.Join(dir, "tree.db")})
	apply(t, tr, h.batch(200))
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(h.records)
	w := &applyingWriter{apply: func() { apply(t, tr, h.compaction()); apply(t, tr, h.batch(20)) }}
	n, err := s.WriteTo(w)
	if err != nil || n != s.Size() || n != int64(len(w.data)) || n%512 != 0 {
		t.Fatalf("SNP-4: %d bytes of %d, %v", n, s.Size(), err)
	}
	s.Close()
	s.Close()
	if tr.OpenReads() != 0 {
		t.Errorf("%d open reads", tr.OpenReads())
	}
	path := filepath.Join(dir, "copy.db")
	writeFile(t, path, w.data)
	c := openTest(t, Options{Path: path})
	t.Run("SNP-5", func(t *testing.T) { readContent(t, c).equal(t, want) })
	noFindings(t, c)
	readContent(t, tr).equal(t, h.records)
	noFindings(t, tr)
}

// applyingWriter changes the tree before each of its writes.
type applyingWriter struct {
	data  []byte
	apply func()
}

func (w *applyingWriter) Write(b []byte) (int, error) {
	w.apply()
	w.data = append(w.data, b...)
	return len(b), nil
}

func TestHash(t *testing.T) {
	h := newHistory(seeded(t))
	path := testPath(t)
	tr := openTest(t, Options{Path: path})
	apply(t, tr, h.batch(100))
	apply(t, tr, &Batch{Term: new(int64(4)), LeasePut: []LeaseRecord{{ID: 3, TTL: 4}}, ScheduledCompact: new(int64(3))})
	got, err := tr.Hash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, tr, &Batch{Term: new(int64(5)), Seq: new(uint64(1000))})
	if again, err := tr.Hash(t.Context()); err != nil || again != got {
		t.Errorf("MNT-2: term and index changed the hash from %08x to %08x, %v", got, again, err)
	}
	apply(t, tr, &Batch{LeaseDelete: []int64{3}})
	if again, err := tr.Hash(t.Context()); err != nil || again == got {
		t.Errorf("MNT-2: a lease did not change the hash, %v", err)
	}
	apply(t, tr, &Batch{LeasePut: []LeaseRecord{{ID: 3, TTL: 4}}})
	tr.Close()
	if want := independentHash(t, path); got != want {
		t.Errorf("MNT-2: %08x, want %08x", got, want)
	}
}

// independentHash collects the bytes by name and sums them up at the end.
func independentHash(t *testing.T, path string) uint32 {
	var all []byte
	inBolt(t, path, func(tx *bolt.Tx) error {
		for _, name := range []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members",
			"members_removed", "meta", "tarn"} {
			all = append(all, name...)
			c := tx.Bucket([]byte(name)).Cursor()
			for k, v := c.First(); k != nil; k, v = c.Next() {
				if name == "meta" && (string(k) == "term" || string(k) == "consistent_index" || string(k) == "storageVersion") {
					continue
				}
				all = append(append(all, k...), v...)
			}
		}
		return nil
	})
	return crc32.Checksum(all, crc32.MakeTable(0x82f63b78))
}

func TestReadersDuringWritesAndDefragment(t *testing.T) {
	h := newHistory(seeded(t))
	tr := openTest(t, Options{Path: testPath(t)})
	apply(t, tr, h.batch(300))
	fixed := maps.Clone(h.records) // never compacted below
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v := tr.View()
				for k, want := range fixed {
					if rev, dead, _ := ParseKey([]byte(k)); !dead {
						if got, ok := v.Get(rev); !ok || string(got) != want {
							t.Errorf("%v is missing: %v", rev, v.Err())
						}
					}
				}
				v.Close()
			}
		})
	}
	for range 5 {
		apply(t, tr, h.batch(50))
		if err := tr.Defragment(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	readContent(t, tr).equal(t, h.records)
	noFindings(t, tr)
}
