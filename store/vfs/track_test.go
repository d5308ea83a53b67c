package vfs

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// heldFS stops syncs and commits until it is told to go on.
type heldFS struct {
	FS
	arrived, open chan struct{}
}

type heldFile struct {
	File
	fs *heldFS
}

func (h *heldFS) hold() {
	h.arrived <- struct{}{}
	<-h.open
}

func (h *heldFS) Create(name string) (File, error) {
	f, err := h.FS.Create(name)
	return heldFile{f, h}, err
}

func (h *heldFS) SyncDir(dir string) error {
	h.hold()
	return h.FS.SyncDir(dir)
}

func (h *heldFS) Commit(name string, commit func() error) error {
	h.hold()
	return h.FS.Commit(name, commit)
}

func (f heldFile) Sync() error {
	f.fs.hold()
	return f.File.Sync()
}

func TestTracked(t *testing.T) {
	dir := t.TempDir()
	held := &heldFS{FS: OS, arrived: make(chan struct{}), open: make(chan struct{})}
	files := Track(held)
	name := filepath.Join(dir, "file")
	f, err := files.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("text"), 0); err != nil {
		t.Fatal(err)
	}
	if w := files.Waits(); len(w) != 0 || files.Synced() != 0 {
		t.Errorf("nothing is under way: %v; %d synced", w, files.Synced())
	}
	failed := errors.New("commit failed")
	results := make(chan error, 3)
	begin := time.Now()
	for _, op := range []func() error{
		f.Sync,
		func() error { return files.SyncDir(dir) },
		func() error { return files.Commit("tree", func() error { return failed }) },
	} {
		go func() { results <- op() }()
		<-held.arrived
	}
	want := map[Waiting]bool{{Op: "fdatasync", Name: name}: true, {Op: "fsync", Name: dir}: true, {Op: OpCommit, Name: "tree"}: true}
	list := files.Waits()
	for _, w := range list {
		if w.For < 0 || w.For > time.Since(begin) {
			t.Errorf("%+v waits for longer than the test runs", w)
		}
		w.For = 0
		if !want[w] {
			t.Errorf("%+v is under way", w)
		}
	}
	if len(list) != len(want) {
		t.Errorf("%d operations are under way, not %d", len(list), len(want))
	}
	close(held.open)
	failures := 0
	for range want {
		if err := <-results; err != nil {
			if failures++; err != failed {
				t.Error(err)
			}
		}
	}
	if w := files.Waits(); failures != 1 || len(w) != 0 || files.Synced() != 3 {
		t.Errorf("%d failures, %v under way, %d synced", failures, w, files.Synced())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// The account is in the path of each write.
func TestTrackedAllocates(t *testing.T) {
	f, err := Track(OS).Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 100)
	n := testing.AllocsPerRun(100, func() {
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations per write", n)
	}
}
