package tree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// eagerGiving gives back each free page of its own.
var eagerGiving = giveRule{run: 4 << 10, least: 4 << 10, share: 1 << 20, part: 16 << 10, step: 32 << 10}

func giveAllBack(tr *Tree) (sum int64, err error) {
	for from := int64(0); ; {
		given, next, err := tr.GiveBack(from)
		sum += given
		if from = next; err != nil || next == 0 {
			return sum, err
		}
	}
}

// emptiedLast is the number of records that the last commit of emptied deletes.
const emptiedLast = 200

// emptied returns a tree of about 40 MB of which one record in ten is left.
func emptied(t *testing.T, o Options) *Tree {
	t.Helper()
	tr := openTest(t, o)
	records := puts(2, 10000, 3600)
	apply(t, tr, &Batch{Put: records})
	var dead []DeadRecord
	for i, r := range records {
		if i%10 != 0 {
			dead = append(dead, DeadRecord{Rev: r.Rev})
		}
	}
	apply(t, tr, &Batch{Delete: dead[:len(dead)-emptiedLast]})
	apply(t, tr, &Batch{Delete: dead[len(dead)-emptiedLast:]})
	return tr
}

// needHoles skips where the file system of the tests can not make holes.
func needHoles(t *testing.T) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := vfs.OS.PunchHole(f.Name(), f, 0, 4096); errors.Is(err, vfs.ErrNoHoles) {
		t.Skip(err)
	}
}

func TestGiveBack(t *testing.T) {
	needHoles(t)
	for _, pageSize := range []int{4096, 16384} {
		punched, commits := 0, 0
		fs := &failFS{FS: vfs.OS}
		path := testPath(t)
		tr := emptied(t, Options{FS: fs, Path: path, PageSize: pageSize})
		fs.punch = func() error { punched++; return nil }
		fs.commit = func(_ string, commit func() error) error { commits++; return commit() }
		want := readContent(t, tr)
		hash, err := tr.Hash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		size, before, inUse := tr.Size(), tr.Allocated(), tr.InUse()
		given, err := giveAllBack(tr)
		if err != nil || given < size/2 || punched == 0 {
			t.Fatalf("%d of %d bytes in %d holes, %v", given, size, punched, err)
		}
		if tr.Size() != size || tr.Allocated() > before-given+1<<20 || tr.InUse() != inUse {
			t.Errorf("size %d, allocated %d, in use %d; before %d, %d, %d", tr.Size(), tr.Allocated(), tr.InUse(), size, before, inUse)
		}
		if tr.Holes() < given-1<<20 || tr.Holes() > given+1<<20 {
			t.Errorf("%d bytes of holes after %d were given back", tr.Holes(), given)
		}
		if commits != 0 {
			t.Errorf("%d commits, though the last change freed little", commits)
		}
		punched = 0
		if again, err := giveAllBack(tr); again != 0 || punched != 0 || err != nil {
			t.Errorf("the second time: %d bytes in %d holes, %v", again, punched, err)
		}
		readContent(t, tr).equal(t, want)
		if got, err := tr.Hash(t.Context()); got != hash || err != nil {
			t.Errorf("hash %08x, %v, want %08x", got, err, hash)
		}
		noFindings(t, tr)
		copied := filepath.Join(t.TempDir(), "copy.db")
		copyTo(t, tr, copied)
		readContent(t, openTest(t, Options{Path: copied, ReadOnly: true})).equal(t, want)

		tr.Close()
		tr = openTest(t, Options{Path: path})
		readContent(t, tr).equal(t, want)
		more := puts(100000, 5000, 3600) // into the holes
		apply(t, tr, &Batch{Put: more})
		for _, r := range more {
			want[string(r.Rev.AppendKey(nil, false))] = string(r.Value)
		}
		readContent(t, tr).equal(t, want)
		noFindings(t, tr)
		if tr.Size() != size || tr.Holes() > given*3/4 {
			t.Errorf("the holes were not used: size %d, was %d, holes %d, were %d", tr.Size(), size, tr.Holes(), given)
		}
		tr.Close()
	}
}

// What the last commit freed is in use by the one before, so one more is made if that is much.
func TestGiveBackWhatTheLastCommitFreed(t *testing.T) {
	needHoles(t)
	commits := 0
	fs := &failFS{FS: vfs.OS}
	path := testPath(t)
	tr := openTest(t, Options{FS: fs, Path: path})
	records := puts(2, 3000, 9000)
	apply(t, tr, &Batch{Put: records})
	var dead []DeadRecord
	for _, r := range records[100:] {
		dead = append(dead, DeadRecord{Rev: r.Rev})
	}
	apply(t, tr, &Batch{Delete: dead})
	fs.commit = func(_ string, commit func() error) error { commits++; return commit() }

	v := tr.View() // may see what the last commit freed, after one commit more
	defer v.Close()
	apply(t, tr, &Batch{Seq: new(uint64(1))})
	if given, err := giveAllBack(tr); err != nil || given < 20<<20 || commits != 1 {
		t.Fatalf("after a commit: %d bytes, %d commits, %v", given, commits, err)
	}
	v.Close()

	apply(t, tr, &Batch{Put: records[100:]})
	apply(t, tr, &Batch{Delete: dead})
	want := readContent(t, tr)
	commits = 0
	if given, err := giveAllBack(tr); err != nil || given < 20<<20 || commits != 1 {
		t.Fatalf("without a commit: %d bytes, %d commits, %v", given, commits, err)
	}
	readContent(t, tr).equal(t, want)
	tr.Close()

	loseNewestMeta(t, path)
	tr = openTest(t, Options{Path: path})
	readContent(t, tr).equal(t, want)
	noFindings(t, tr)
}

// loseNewestMeta makes the newest commit of a file undone.
func loseNewestMeta(t *testing.T, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := findMeta(file)
	if err != nil {
		t.Fatal(err)
	}
	file[m.transaction%2*m.pageSize+pageHeaderLen+metaLen-1] ^= 1 // of the checksum
	writeFile(t, path, file)
}

// A newest meta page that is lost leads back to the one before, whose pages are whole.
func TestGiveBackThenTheNewestMetaIsLost(t *testing.T) {
	needHoles(t)
	path := testPath(t)
	tr := emptied(t, Options{Path: path})
	after := len(readContent(t, tr))
	if given, err := giveAllBack(tr); given == 0 || err != nil {
		t.Fatalf("%d bytes, %v", given, err)
	}
	tr.Close()
	loseNewestMeta(t, path)
	tr = openTest(t, Options{Path: path})
	want := readContent(t, tr)
	if len(want) != after+emptiedLast {
		t.Errorf("%d records, want those of the commit before: %d", len(want), after+emptiedLast)
	}
	noFindings(t, tr)

	// Of the commit before nothing is known now.
	apply(t, tr, &Batch{Seq: new(uint64(9))})
	tr.giving = eagerGiving
	if _, err := giveAllBack(tr); err != nil {
		t.Fatal(err)
	}
	readContent(t, tr).equal(t, want)
	noFindings(t, tr)
}

// What a steady state uses again soon is left alone.
func TestGiveBackOnlyWhatIsMuch(t *testing.T) {
	for name, c := range map[string]struct{ records, dead int }{
		"less than 16 MiB":   {1200, 1100},
		"less than a fourth": {10000, 2000},
	} {
		fs := &failFS{FS: vfs.OS}
		tr := openTest(t, Options{FS: fs, Path: testPath(t)})
		records := puts(2, c.records, 9000)
		apply(t, tr, &Batch{Put: records})
		b := &Batch{}
		for _, r := range records[:c.dead] {
			b.Delete = append(b.Delete, DeadRecord{Rev: r.Rev})
		}
		apply(t, tr, b)
		apply(t, tr, &Batch{Seq: new(uint64(1))})
		fs.punch = func() error { return errors.New("made a hole") }
		fs.commit = func(string, func() error) error { return errors.New("committed") }
		if given, err := giveAllBack(tr); given != 0 || err != nil {
			t.Errorf("%s: %d bytes, %v", name, given, err)
		}
		tr.Close()
	}
}

func TestGiveBackWaitsForOlderReads(t *testing.T) {
	needHoles(t)
	tr := openTest(t, Options{Path: testPath(t)})
	tr.giving = eagerGiving
	records := puts(2, 1000, 900)
	apply(t, tr, &Batch{Put: records})
	old := tr.View()
	defer old.Close()
	for _, half := range [][]Record{records[:500], records[500:]} {
		b := &Batch{}
		for _, r := range half {
			b.Delete = append(b.Delete, DeadRecord{Rev: r.Rev})
		}
		apply(t, tr, b)
	}
	young := tr.View()
	defer young.Close()
	if given, err := giveAllBack(tr); given != 0 || !errors.Is(err, ErrPagesHeld) {
		t.Errorf("with an older read: %d bytes, %v", given, err)
	}
	for _, r := range records {
		if got, ok := old.Get(r.Rev); !ok || !bytes.Equal(got, r.Value) {
			t.Fatalf("the older read does not find revision %d: %v", r.Rev.Main, old.Err())
		}
	}
	old.Close()
	if given, err := giveAllBack(tr); given < 500<<10 || err != nil {
		t.Errorf("with the newest read: %d bytes, %v", given, err)
	}
	if _, ok := young.Last(); ok || young.Err() != nil {
		t.Errorf("the newest read sees records, or fails: %v", young.Err())
	}
}

// A hole that can not be made is no harm, and is not tried for ever where none can.
func TestGiveBackFails(t *testing.T) {
	for name, c := range map[string]struct {
		err, want error
		calls     int
	}{
		"no holes here": {&os.PathError{Op: "fallocate", Path: "x", Err: vfs.ErrNoHoles}, nil, 1},
		"broken":        {syscall.EIO, syscall.EIO, 2},
		"no space":      {syscall.ENOSPC, syscall.ENOSPC, 2},
	} {
		calls := 0
		fs := &failFS{FS: vfs.OS, punch: func() error { calls++; return c.err }}
		tr := emptied(t, Options{FS: fs, Path: testPath(t)})
		want := readContent(t, tr)
		for range 2 {
			if given, err := giveAllBack(tr); given != 0 || !errors.Is(err, c.want) {
				t.Errorf("%s: %d bytes, %v", name, given, err)
			}
		}
		if calls != c.calls {
			t.Errorf("%s: tried %d times, want %d", name, calls, c.calls)
		}
		apply(t, tr, &Batch{Seq: new(uint64(5))})
		readContent(t, tr).equal(t, want)
		tr.Close()
	}
}

func TestGiveBackWhenReadOnlyOrClosed(t *testing.T) {
	path := testPath(t)
	tr := openTest(t, Options{Path: path})
	tr.Close()
	if _, _, err := tr.GiveBack(0); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	tr = openTest(t, Options{Path: path, ReadOnly: true})
	if _, _, err := tr.GiveBack(0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
}
