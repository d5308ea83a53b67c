package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestReadID(t *testing.T) {
	s := openStore(t, Options{Dir: t.TempDir()})
	dir, id := s.opts.Dir, s.ID()
	_, err := ReadID(dir)
	wantErr(t, err, ErrInUse)
	must(t, s.Close())
	if got, err := ReadID(dir); err != nil || got != id {
		t.Errorf("got %q, %v; want %q", got, err, id)
	}
	_, err = ReadID(t.TempDir())
	wantErr(t, err, os.ErrNotExist)
}

// TestForgetLog starts a store from the tree that a server sent, alone.
func TestForgetLog(t *testing.T) {
	s := openStore(t, Options{Dir: t.TempDir()})
	put(t, s, "a", "1")
	want := put(t, s, "b", "2")
	if err := ForgetLog(s.opts.Dir); err == nil {
		t.Error("a log that is there was given up")
	}
	snap, err := s.Snapshot(t.Context())
	must(t, err)
	var image bytes.Buffer
	_, err = snap.WriteTo(&image)
	must(t, err)
	must(t, snap.Close())
	put(t, s, "c", "3") // not in the snapshot
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, treeName), image.Bytes(), 0o600))
	if _, err := OpenView(t.Context(), dir); err == nil {
		t.Fatal("a tree without its log was opened, before that was made known")
	}
	must(t, ForgetLog(dir))
	v := openTestView(t, dir)
	if v.Revision() != want || v.ID() != s.ID() {
		t.Errorf("revision %d of store %s, want %d of %s", v.Revision(), v.ID(), want, s.ID())
	}
	must(t, v.Close())
	r, err := Check(t.Context(), dir)
	if err != nil || len(r.Findings) > 0 {
		t.Errorf("findings %v, %v", r.Findings, err)
	}
	again := openStore(t, Options{Dir: dir})
	put(t, again, "d", "4")
	again = reopen(t, again)
	if got := put(t, again, "e", "5"); got != want+2 {
		t.Errorf("revision %d, want %d", got, want+2)
	}
}
