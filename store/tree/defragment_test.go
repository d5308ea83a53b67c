package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// fragmented returns a tree of about 8 MB of which one record in four is left.
func fragmented(t *testing.T, o Options) (*Tree, content) {
	t.Helper()
	tr := openTest(t, o)
	records := puts(2, 8000, 1000)
	apply(t, tr, &Batch{Put: records, LeasePut: []LeaseRecord{{ID: 1, TTL: 2}}, Seq: new(uint64(7))})
	var dead []DeadRecord
	for i, r := range records {
		if i%4 != 0 {
			dead = append(dead, DeadRecord{Rev: r.Rev})
		}
	}
	apply(t, tr, &Batch{Delete: dead})
	return tr, readContent(t, tr)
}

func onlyTree(t *testing.T, path string) {
	t.Helper()
	names, err := vfs.OS.List(filepath.Dir(path))
	if err != nil || !slices.Equal(names, []string{filepath.Base(path)}) {
		t.Errorf("files %v, %v", names, err)
	}
}

func TestDefragment(t *testing.T) {
	path := testPath(t)
	tr, want := fragmented(t, Options{Path: path, PageSize: 8192})
	before := tr.Size()
	hash, err := tr.Hash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := tr.View()
	first, ok := old.Get(Revision{2, 0})
	if !ok {
		t.Fatal("the first record is missing")
	}
	if err := tr.Defragment(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tr.Size() > before/3 || tr.InUse() < tr.Size()*9/10 {
		t.Errorf("%d of %d bytes in use, before %d", tr.InUse(), tr.Size(), before)
	}
	if string(first) != want[string(Revision{2, 0}.AppendKey(nil, false))] {
		t.Error("a value read before is not valid any more")
	}
	if got, ok := old.Get(Revision{6, 0}); !ok || len(got) < 1000 {
		t.Errorf("the old reader finds nothing: %v", old.Err())
	}
	if tr.OpenReads() != 1 {
		t.Errorf("%d open reads", tr.OpenReads())
	}
	old.Close()
	readContent(t, tr).equal(t, want)
	if again, err := tr.Hash(t.Context()); err != nil || again != hash {
		t.Errorf("hash %08x, %v; before %08x", again, err, hash)
	}
	apply(t, tr, &Batch{Put: puts(9000, 1000, 1000)})
	noFindings(t, tr)
	onlyTree(t, path)
	tr.Close()
	tr = openTest(t, Options{Path: path})
	if got := len(readContent(t, tr)); got != len(want)+1000 {
		t.Errorf("%d records after reopening, want %d", got, len(want)+1000)
	}
}

func TestDefragmentFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		hook  func(fs *failFS, cancel func())
		want  error
		final bool
	}{
		"first commit": {hook: func(fs *failFS, _ func()) {
			fs.commit = func(string, func() error) error { return broken }
		}, want: broken},
		"no space in the third commit": {hook: func(fs *failFS, _ func()) {
			n := 0
			fs.commit = func(_ string, commit func() error) error {
				if n++; n == 3 {
					return syscall.ENOSPC
				}
				return commit()
			}
		}, want: syscall.ENOSPC},
		"panic in a commit": {hook: func(fs *failFS, _ func()) {
			n := 0
			fs.commit = func(_ string, commit func() error) error {
				if n++; n == 2 {
					panic("assertion failed")
				}
				return commit()
			}
		}, want: ErrDamaged},
		"canceled midway": {hook: func(fs *failFS, cancel func()) {
			fs.commit = func(_ string, commit func() error) error { cancel(); return commit() }
		}, want: context.Canceled},
		"rename":   {hook: func(fs *failFS, _ func()) { fs.rename = func() error { return broken } }, want: broken},
		"sync dir": {hook: func(fs *failFS, _ func()) { fs.syncDir = func() error { return broken } }, want: broken, final: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			fs := &failFS{FS: vfs.OS}
			tr, want := fragmented(t, Options{FS: fs, Path: path})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.hook(fs, cancel)
			err := tr.Defragment(ctx)
			if !errors.Is(err, c.want) || errors.Is(err, ErrFailed) != c.final {
				t.Fatalf("error %v", err)
			}
			*fs = failFS{FS: vfs.OS}
			readContent(t, tr).equal(t, want)
			onlyTree(t, path)
			err = tr.Apply(&Batch{Put: puts(9000, 1, 1)})
			if errors.Is(err, ErrFailed) != c.final || !c.final && err != nil {
				t.Fatalf("write after it: %v", err)
			}
			if c.final {
				return
			}
			noFindings(t, tr)
			if err := tr.Defragment(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(readContent(t, tr)) != len(want)+1 {
				t.Error("records are missing")
			}
		})
	}
}

func TestLeftoverCopyIsRemoved(t *testing.T) {
	path := testPath(t)
	tr, _ := fragmented(t, Options{Path: path})
	tr.Close()
	writeFile(t, path+newSuffix, []byte("half a copy"))
	openTest(t, Options{Path: path, ReadOnly: true}).Close()
	if _, err := os.Stat(path + newSuffix); err != nil {
		t.Errorf("a reader removed it: %v", err)
	}
	openTest(t, Options{Path: path})
	onlyTree(t, path)
}
