package tree

import (
	"maps"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// script does a store's life on a tree: it returns what the tree must hold, and what it
// may hold instead if a write was under way.
func script(h *history, o Options, t *testing.T) (sure, maybe content, err error) {
	sure, maybe = content{}, content{}
	tr, err := Open(o)
	if err != nil {
		return sure, maybe, err
	}
	defer tr.Close()
	tr.giving = eagerGiving
	for i := range 8 {
		var b *Batch
		if i%3 == 2 {
			b = h.compaction()
		} else {
			b = h.batch(15)
		}
		maybe = maps.Clone(h.records)
		if err := tr.Apply(b); err != nil {
			return sure, maybe, err
		}
		sure = maybe
		if i%3 == 2 {
			given, err := giveAllBack(tr)
			if h.given += given; err != nil {
				return sure, maybe, err
			}
		}
		if i == 4 || i == 7 {
			if err := tr.Defragment(t.Context()); err != nil {
				return sure, maybe, err
			}
		}
	}
	return sure, maybe, nil
}

func TestPowerCutAtEachOperation(t *testing.T) {
	rnd := seeded(t)
	for n := 1; ; n++ {
		dir := t.TempDir()
		fs, err := simfs.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		fs.CrashAt(n)
		h := newHistory(rnd)
		sure, maybe, err := script(h, Options{FS: fs, Path: filepath.Join(dir, "tree.db"), PageSize: 4096}, t)
		if fs.Ops() < n {
			if err != nil || h.given == 0 {
				t.Fatalf("%d bytes given back, %v", h.given, err)
			}
			t.Logf("%d operations", n-1)
			return
		}
		if !fs.WasCut() {
			continue // it removed what was not there
		}
		for range 3 {
			image := filepath.Join(t.TempDir(), "image")
			if err := fs.Image(image, rnd); err != nil {
				t.Fatal(err)
			}
			tr, err := Open(Options{Path: filepath.Join(image, "tree.db")})
			if err != nil {
				t.Fatalf("power cut at operation %d: %v", n, err)
			}
			got := readContent(t, tr)
			if !maps.Equal(got, sure) && !maps.Equal(got, maybe) {
				t.Errorf("power cut at operation %d: %d records, want %d or %d", n, len(got), len(sure), len(maybe))
			}
			noFindings(t, tr)
			onlyTree(t, filepath.Join(image, "tree.db"))
			apply(t, tr, &Batch{Put: puts(1000, 20, 500)})
			noFindings(t, tr)
			tr.Close()
		}
	}
}

// Each operation in turn finds no space. The tree goes on, or says that it can not.
func TestNoSpaceAtEachOperation(t *testing.T) {
	rnd := seeded(t)
	for n := 1; ; n++ {
		dir := t.TempDir()
		fs, err := simfs.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		fs.FailAt(n, syscall.ENOSPC)
		h := newHistory(rnd)
		path := filepath.Join(dir, "tree.db")
		sure, maybe, err := script(h, Options{FS: fs, Path: path, PageSize: 4096}, t)
		if err == nil && fs.Ops() < n {
			return
		}
		if err != nil && !vfs.IsNoSpace(err) {
			t.Fatalf("operation %d: %v", n, err)
		}
		fs.SetHook(nil)
		tr := openTest(t, Options{FS: fs, Path: path})
		got := readContent(t, tr)
		if !maps.Equal(got, sure) && !maps.Equal(got, maybe) {
			t.Errorf("operation %d: %d records, want %d or %d", n, len(got), len(sure), len(maybe))
		}
		noFindings(t, tr)
		apply(t, tr, &Batch{Put: puts(1000, 20, 500)})
		tr.Close()
	}
}
