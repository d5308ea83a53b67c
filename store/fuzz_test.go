package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/tree/harm"
)

const (
	// fuzzHang is how long a damaged directory may keep the store busy: far more than it
	// does on a slow machine.
	fuzzHang = time.Minute
	// fuzzMemory is what it may allocate: a check, two starts, and a few requests.
	fuzzMemory = 64 << 20

	fuzzPage = 1024 // page size of the trees that are damaged
)

// FuzzDataDir damages the tree in a data directory. Check and Open say so, or the store
// works: it does not panic, fault, hang, or allocate without bound, and what Check finds good is
// good. Open changes nothing if it refuses.
func FuzzDataDir(f *testing.F) {
	dirs := [][]dirFile{fuzzDir(f, false), fuzzDir(f, true)}
	for _, script := range harm.Seeds() {
		f.Add(uint8(0), script)
		f.Add(uint8(1), script)
	}
	f.Fuzz(func(t *testing.T, which uint8, script []byte) {
		dir := t.TempDir()
		for _, file := range dirs[int(which)%len(dirs)] {
			content := file.content
			if file.name == treeName {
				content = harm.Apply(content, fuzzPage, script)
			}
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file.name)), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, file.name), content, 0o600))
		}
		hang := time.AfterFunc(fuzzHang, func() { panic("using the directory does not end") })
		defer hang.Stop()
		before := allocated()
		useHarmed(t, dir)
		if used := allocated() - before; used > fuzzMemory {
			t.Errorf("%d bytes were allocated", used)
		}
	})
}

// allocated is the number of bytes that were allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func fuzzOptions(dir string) Options {
	return Options{Dir: dir, segmentBytes: 4 << 10, reserveBytes: 1, freedWithin: 1}
}

// useHarmed checks and opens a damaged directory and works with it.
func useHarmed(t *testing.T, dir string) {
	path := filepath.Join(dir, treeName)
	whole, err := os.ReadFile(path)
	must(t, err)
	report, err := Check(bg, dir)
	must(t, err)
	s, err := Open(fuzzOptions(dir))
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
			t.Errorf("Open: %v", err)
		}
		if len(report.Findings) == 0 {
			t.Errorf("Check finds nothing, but Open says %v", err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("Open refused the directory and changed it (%v)", err)
		}
		return
	}
	good := len(report.Findings) == 0
	if kv, err := s.HashKV(bg, report.Revision); good && (err != nil || kv.Hash != report.Hash) {
		t.Errorf("the hash is %08x, %v; Check says %08x", kv.Hash, err, report.Hash)
	}
	err = work(s)
	if good && err != nil {
		t.Errorf("Check finds nothing, but working with the store fails: %v", err)
	}
	if err := s.Close(); good && err != nil {
		t.Errorf("close: %v", err)
	}
	if after, err := Check(bg, dir); good && (err != nil || len(after.Findings) > 0) {
		t.Errorf("afterwards Check says %q, %v", after.Findings, err)
	}
}

// work reads everything, at each revision that can be read, and changes something.
func work(s *Store) error {
	var errs []error
	first := max(1, s.compacted.Load())
	for rev := first; rev <= s.Revision() && rev < first+100; rev += 10 {
		_, _, err := read(s, &RangeRequest{KeyRange: everything, Revision: rev})
		errs = append(errs, err)
	}
	lease, err := s.LeaseGrant(bg, 0, 100)
	errs = append(errs, err)
	_, err = do(s, Op{Put: &PutRequest{Key: []byte("key-1"), Value: bytes.Repeat([]byte("new"), 500), Lease: lease.ID}})
	errs = append(errs, err)
	_, err = do(s, deleteOp(between("key-2", "key-4")))
	errs = append(errs, err, s.Checkpoint(bg))
	_, err = s.Compact(bg, s.Revision()-1, true)
	return errors.Join(append(errs, err)...)
}

// dirFile is one file of a data directory.
type dirFile struct {
	name    string
	content []byte
}

// fuzzDir makes a data directory whose tree has several levels, free pages, and leases, and
// whose log has something that the tree has not. As etcd leaves it, a tree is
// without its list of free pages. All is the same each time.
func fuzzDir(f *testing.F, fromEtcd bool) []dirFile {
	dir := f.TempDir()
	t, err := tree.Open(tree.Options{Path: filepath.Join(dir, treeName), PageSize: fuzzPage})
	must(f, err)
	for _, b := range fuzzBatches() {
		must(f, t.Apply(b))
	}
	must(f, t.Close())
	s, err := Open(fuzzOptions(dir))
	must(f, err)
	put(f, s, "key-1", "only in the log")
	copied := filepath.Join(f.TempDir(), "data")
	must(f, os.CopyFS(copied, os.DirFS(dir)))
	must(f, s.Close())
	return readDir(f, copied, fromEtcd)
}

// fuzzBatches are the changes of a small store up to a compaction, and after it.
func fuzzBatches() []*tree.Batch {
	const compacted, last = 40, 120
	rnd := rand.New(rand.NewPCG(1, 2))
	var first, second, third tree.Batch
	keys := map[string]tree.KV{} // the newest put of each live key
	for rev := int64(2); rev <= last; rev++ {
		b := &first
		if rev > last/2 {
			b = &third
		}
		key := fmt.Sprintf("key-%d", rnd.IntN(30))
		value := bytes.Repeat([]byte{'v'}, rnd.IntN(300))
		kv, live := keys[key]
		put := tree.Record{Rev: Revision{Main: rev}}
		if live && rev <= compacted {
			second.Delete = append(second.Delete, tree.DeadRecord{Rev: Revision{Main: kv.Mod}})
		}
		if live && rev%7 == 0 {
			delete(keys, key)
			put.Tombstone = true
			put.Value = tree.AppendKV(nil, []byte(key), 0, 0, 0, nil, 0)
			if rev < compacted {
				second.Delete = append(second.Delete, tree.DeadRecord{Rev: put.Rev, Tombstone: true})
			}
		} else {
			if !live {
				kv.Create = rev
			}
			kv.Mod, kv.Version = rev, kv.Version+1
			keys[key] = kv
			put.Value = tree.AppendKV(nil, []byte(key), kv.Create, rev, kv.Version, value, rev)
		}
		b.Put = append(b.Put, put)
		b.LeasePut = append(b.LeasePut, tree.LeaseRecord{ID: rev, TTL: 1000})
	}
	slices.SortFunc(second.Delete, func(a, b tree.DeadRecord) int { return a.Rev.Compare(b.Rev) })
	first.StoreID = &tree.StoreID{1, 2, 3}
	first.AlarmPut = []tree.AlarmRecord{{MemberID: 7, Type: int32(NoSpace)}}
	second.ScheduledCompact, second.FinishedCompact = new(int64(compacted)), new(int64(compacted))
	third.AlarmDelete = first.AlarmPut
	return []*tree.Batch{&first, &second, &third}
}

func readDir(f *testing.F, dir string, fromEtcd bool) (files []dirFile) {
	path := filepath.Join(dir, treeName)
	rewrite(f, path, fromEtcd)
	segments, err := filepath.Glob(filepath.Join(dir, walName, "*.wal"))
	must(f, err)
	for _, file := range append(segments, path) {
		content, err := os.ReadFile(file)
		must(f, err)
		name, err := filepath.Rel(dir, file)
		must(f, err)
		files = append(files, dirFile{name, bytes.TrimRight(content, "\x00")})
	}
	last := &files[len(files)-1]
	last.content = append(last.content, make([]byte, -len(last.content)&(fuzzPage-1))...)
	return files
}

// rewrite copies a tree record by record, which gives the same pages each time: bbolt chooses at
// random when it writes several buckets, or from a map of free pages.
func rewrite(f *testing.F, path string, fromEtcd bool) {
	src, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	must(f, err)
	options := &bolt.Options{PageSize: fuzzPage, NoFreelistSync: fromEtcd, NoSync: true, FreelistType: bolt.FreelistArrayType}
	dst, err := bolt.Open(path+".copy", 0o600, options)
	must(f, err)
	must(f, bolt.Compact(dst, src, 1))
	must(f, errors.Join(dst.Close(), src.Close(), os.Rename(path+".copy", path)))
}
