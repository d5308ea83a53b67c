package tree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

func TestApplyAgainstModel(t *testing.T) {
	rnd := seeded(t)
	path := testPath(t)
	for _, pageSize := range []int{0, 1024, 16384} {
		os.Remove(path)
		h := newHistory(rnd)
		tr := openTest(t, Options{Path: path, PageSize: pageSize})
		for i := range 40 {
			if i%5 == 4 {
				apply(t, tr, h.compaction())
			} else {
				apply(t, tr, h.batch(1+rnd.IntN(60)))
			}
			if i%10 == 9 {
				if err := tr.Close(); err != nil {
					t.Fatal(err)
				}
				tr = openTest(t, Options{Path: path})
			}
			if m, err := tr.Meta(); err != nil || m.Seq != h.seq || m.Revision != h.rev {
				t.Fatalf("meta %+v, %v; want seq %d, revision %d", m, err, h.seq, h.rev)
			}
		}
		readContent(t, tr).equal(t, h.records)
		noFindings(t, tr)
		if tr.InUse() <= 0 || tr.InUse() > tr.Size() {
			t.Errorf("in use %d of %d", tr.InUse(), tr.Size())
		}
		tr.Close()
	}
}

func TestApplyNothing(t *testing.T) {
	var commits counter
	tr := openTest(t, Options{Path: testPath(t), ObserveCommit: commits.observe})
	b := &Batch{Put: puts(2, 1, 1), Seq: new(uint64(1)), Term: new(int64(2)), LeasePut: []LeaseRecord{{ID: 1, TTL: 2}},
		AlarmPut: []AlarmRecord{{MemberID: 1, Type: 1}}, Member: &MemberRecord{ID: 1}, StoreID: &StoreID{1}}
	apply(t, tr, b)
	b.Put = nil
	b.Delete = []DeadRecord{{Rev: Revision{9, 9}}, {Rev: Revision{2, 0}, Tombstone: true}}
	b.LeaseDelete, b.AlarmDelete = []int64{5}, []AlarmRecord{{MemberID: 9, Type: 1}}
	apply(t, tr, b)
	apply(t, tr, &Batch{})
	if n := commits.n.Load(); n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
}

func TestFreedPagesAreNotInUse(t *testing.T) {
	tr := openTest(t, Options{Path: testPath(t)})
	records := puts(2, 5000, 1000)
	apply(t, tr, &Batch{Put: records})
	full, size := tr.InUse(), tr.Size()
	var dead []DeadRecord
	for _, r := range records[:4500] {
		dead = append(dead, DeadRecord{Rev: r.Rev})
	}
	apply(t, tr, &Batch{Delete: dead})
	if tr.InUse() > full/4 {
		t.Errorf("in use %d after the deletion of nine tenths of %d", tr.InUse(), full)
	}
	for i := range 4 { // pages are reused
		apply(t, tr, &Batch{Put: puts(6000+int64(i)*1000, 1000, 1000)})
	}
	if tr.Size() > size+growStep {
		t.Errorf("the file grew from %d to %d in spite of free pages", size, tr.Size())
	}
	noFindings(t, tr)
}

func TestApplyFailures(t *testing.T) {
	broken := errors.New("broken disk")
	before := func(err error) func(string, func() error) error {
		return func(string, func() error) error { return err }
	}
	after := func(err error) func(string, func() error) error {
		return func(_ string, commit func() error) error { return errors.Join(commit(), err) }
	}
	for name, c := range map[string]struct {
		hook  func(string, func() error) error
		final bool
	}{
		"no space before the commit": {before(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), false},
		"quota before the commit":    {before(syscall.EDQUOT), false},
		"growing failed, as text":    {before(errors.New("file resize error: truncate x: no space left on device")), false},
		"another error before":       {before(broken), true},
		"no space after":             {after(syscall.ENOSPC), true},
		"another error after":        {after(broken), true},
		"a panic":                    {func(string, func() error) error { panic("freepages") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			fs := &failFS{FS: vfs.OS}
			tr := openTest(t, Options{FS: fs, Path: testPath(t)})
			apply(t, tr, &Batch{Put: puts(2, 10, 100)})
			want := readContent(t, tr)
			fs.commit = c.hook
			err := tr.Apply(&Batch{Put: puts(12, 10, 100)})
			if errors.Is(err, ErrFailed) != c.final {
				t.Fatalf("error %v", err)
			}
			if !c.final && !vfs.IsNoSpace(err) {
				t.Fatalf("error %v does not match IsNoSpace", err)
			}
			fs.commit = nil
			again := tr.Apply(&Batch{Put: puts(22, 10, 100)})
			if c.final {
				if !errors.Is(again, ErrFailed) {
					t.Errorf("a write after the failure: %v", again)
				}
				if err := tr.Defragment(t.Context()); !errors.Is(err, ErrFailed) {
					t.Errorf("a defragmentation after the failure: %v", err)
				}
				return
			}
			if again != nil {
				t.Fatal(again)
			}
			for _, r := range puts(22, 10, 100) {
				want[string(r.Rev.AppendKey(nil, false))] = string(r.Value)
			}
			readContent(t, tr).equal(t, want)
			noFindings(t, tr)
		})
	}
}

func TestCreateFails(t *testing.T) {
	full := func() error { return syscall.ENOSPC }
	for name, fs := range map[string]*failFS{
		"commit":  {FS: vfs.OS, commit: func(_ string, commit func() error) error { return errors.Join(commit(), syscall.ENOSPC) }},
		"rename":  {FS: vfs.OS, rename: full},
		"syncdir": {FS: vfs.OS, syncDir: full},
	} {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			if tr, err := Open(Options{FS: fs, Path: path}); err == nil || !vfs.IsNoSpace(err) {
				t.Fatalf("Open: %v, %v", tr, err)
			}
			tr := openTest(t, Options{Path: path})
			apply(t, tr, &Batch{Put: puts(2, 1, 1)})
			names, err := vfs.OS.List(filepath.Dir(path))
			if err != nil || !slices.Equal(names, []string{"tree.db"}) {
				t.Errorf("files %v, %v", names, err)
			}
		})
	}
}

func TestClosedAndReadOnly(t *testing.T) {
	path := testPath(t)
	if _, err := Open(Options{Path: path, ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("reading what is not there: %v", err)
	}
	tr := openTest(t, Options{Path: path})
	apply(t, tr, &Batch{Put: puts(2, 1, 1)})
	if _, err := Open(Options{Path: path}); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second open: %v", err)
	}
	tr.Close()
	if err := tr.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	v := tr.View()
	defer v.Close()
	if _, ok := v.Get(Revision{2, 0}); ok || !errors.Is(v.Err(), ErrClosed) {
		t.Errorf("get after close: %v, %v", ok, v.Err())
	}
	if err := tr.Apply(&Batch{}); !errors.Is(err, ErrClosed) {
		t.Errorf("apply after close: %v", err)
	}
	if err := tr.Defragment(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("defragment after close: %v", err)
	}
	for range 2 { // two readers share it
		ro := openTest(t, Options{Path: path, ReadOnly: true})
		if err := ro.Apply(&Batch{Put: puts(3, 1, 1)}); !errors.Is(err, ErrReadOnly) {
			t.Errorf("writing to a read-only tree: %v", err)
		}
		if len(readContent(t, ro)) != 1 || ro.Size() == 0 || ro.InUse() == 0 {
			t.Errorf("read-only: size %d, in use %d", ro.Size(), ro.InUse())
		}
		noFindings(t, ro)
	}
}
