package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

func TestParseFaults(t *testing.T) {
	for line, want := range map[string]faults{
		"good":           {room: unlimited},
		"full":           {},
		"room 5000":      {room: 5000},
		"slow 5ms 60ms":  {slowMin: 5 * time.Millisecond, slowMax: 60 * time.Millisecond, room: unlimited},
		"slow 20ms 20ms": {slowMin: 20 * time.Millisecond, slowMax: 20 * time.Millisecond, room: unlimited},
	} {
		if got, err := parseFaults(line); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "room", "room x", "slow 5ms", "slow 60ms 5ms", "bad"} {
		if f, err := parseFaults(line); err == nil {
			t.Errorf("%q is read as %+v", line, f)
		}
	}
}

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	d := newDisk(vfs.OS)
	old, err := d.Create(filepath.Join(dir, "old"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.WriteAt(make([]byte, 1000), 0); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	d.set(faults{room: 101})
	f, err := d.Create(filepath.Join(dir, "new")) // takes 1
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.WriteAt(make([]byte, 60), 0); n != 60 || err != nil {
		t.Errorf("first write: %d bytes, %v", n, err)
	}
	if n, err := f.WriteAt(make([]byte, 60), 60); n != 40 || !vfs.IsNoSpace(err) {
		t.Errorf("second write: %d bytes, %v", n, err)
	}
	if u, err := d.Usage(dir); u.Free != 0 || err != nil {
		t.Errorf("full: %+v, %v", u, err)
	}
	if err := d.Commit("tree", func() error { t.Error("committed"); return nil }); !vfs.IsNoSpace(err) {
		t.Errorf("commit: %v", err)
	}
	if err := d.Remove(filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt(make([]byte, 1000), 0); n != 1000 || err != nil {
		t.Errorf("after a file was removed: %d bytes, %v", n, err)
	}
}

// TestLiar: what was written and synced is in the file only after a while, and
// whoever reads gets it all the same.
func TestLiar(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	l := newLiar(vfs.OS, time.Hour)
	f, err := l.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("hello"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); len(b) != 0 || err != nil {
		t.Errorf("after the sync the file holds %q, %v", b, err)
	}
	b := make([]byte, 5)
	if _, err := f.ReadAt(b, 0); string(b) != "hello" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if _, err := f.WriteAt([]byte("J"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); string(b) != "Jello" || err != nil {
		t.Errorf("after closing the file holds %q, %v", b, err)
	}
}
