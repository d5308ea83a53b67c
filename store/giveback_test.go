package store

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// holesFS tells whether the file system of the tests can make holes.
type holesFS struct {
	vfs.FS
	unable bool
}

func (h *holesFS) PunchHole(name string, f *os.File, off, size int64) error {
	err := h.FS.PunchHole(name, f, off, size)
	h.unable = h.unable || errors.Is(err, vfs.ErrNoHoles)
	return err
}

// filled opens a store whose tree has 48 MiB of old versions of a few keys, and 1 MiB of new ones.
func filled(t *testing.T) *Store {
	t.Helper()
	s := openStore(t, Options{Dir: t.TempDir(), FS: &holesFS{FS: newFaultFS()}})
	for round := range 49 {
		for i := range 32 {
			put(t, s, fmt.Sprint(i), fmt.Sprint(round)+string(make([]byte, 32<<10)))
		}
		if round%8 == 0 {
			must(t, s.Checkpoint(bg))
		}
	}
	must(t, s.Checkpoint(bg))
	return s
}

func (h *holesFS) skip(t *testing.T) {
	t.Helper()
	if h.unable {
		t.Skip("the file system can not make holes")
	}
}

// CMP, MNT-1: after a large compaction the disk space comes back by itself, and nothing else changes.
func TestCompactionGivesSpaceBack(t *testing.T) {
	s := filled(t)
	before := s.Status()
	var hash uint32
	compactTo(t, s, s.Revision())
	s.opts.FS.(*holesFS).skip(t)
	after := s.Status()
	given := int64(s.Counters().BytesGivenBack)
	if given < 32<<20 || after.Allocated > before.Allocated-given+2<<20 {
		t.Errorf("%d bytes given back; allocated %d, before %d", given, after.Allocated, before.Allocated)
	}
	if after.Size < before.Size || after.InUse > before.InUse/8 {
		t.Errorf("size %d, in use %d; before %d, %d", after.Size, after.InUse, before.Size, before.InUse)
	}
	for round := range 2 {
		_, kvs, err := read(s, &RangeRequest{KeyRange: everything})
		must(t, err)
		for _, kv := range kvs {
			if string(kv.Value[:2]) != "48" || len(kv.Value) != 2+32<<10 {
				t.Fatalf("%s has %d bytes, %q...", kv.Key, len(kv.Value), kv.Value[:2])
			}
		}
		if len(kvs) != 32 {
			t.Errorf("%d keys", len(kvs))
		}
		again, err := s.HashKV(bg, 0)
		must(t, err)
		if round == 1 && again.Hash != hash {
			t.Errorf("hash %08x after a restart, want %08x", again.Hash, hash)
		}
		hash = again.Hash
		s = reopen(t, s)
	}

	// A compaction that frees little leaves the file as it is.
	counted := s.Counters().BytesGivenBack
	put(t, s, "0", "")
	compactTo(t, s, put(t, s, "0", ""))
	if n := s.Counters().BytesGivenBack; n != counted {
		t.Errorf("%d bytes given back after a small compaction", n-counted)
	}
}

// What an older read still sees is given back with a later checkpoint.
func TestSpaceIsGivenBackAfterReads(t *testing.T) {
	s := filled(t)
	image, err := s.Snapshot(bg)
	must(t, err)
	defer image.Close()
	put(t, s, "a", "1")
	compactTo(t, s, put(t, s, "a", "2"))
	s.opts.FS.(*holesFS).skip(t)
	if n := s.Counters().BytesGivenBack; n != 0 {
		t.Errorf("%d bytes were given back under a snapshot", n)
	}
	must(t, image.Close())
	put(t, s, "a", "3")
	s.backgroundCheckpoint()
	if n := s.Counters().BytesGivenBack; n < 32<<20 {
		t.Errorf("%d bytes were given back after it", n)
	}
}

// Holes are no room for a checkpoint: the file system must have it.
func TestHolesAreNoRoom(t *testing.T) {
	s := filled(t)
	compactTo(t, s, s.Revision())
	s.opts.FS.(*holesFS).skip(t)
	for range 4 {
		put(t, s, "b", string(make([]byte, 1<<20)))
	}
	s.opts.FS.(*holesFS).FS.(*faultFS).set(func(f *faultFS) {
		f.usage = func() vfs.Usage { return vfs.Usage{Total: 1 << 40, Free: 1 << 20} }
	})
	wantErr(t, s.Checkpoint(bg), ErrNoSpace)
	s.opts.FS.(*holesFS).FS.(*faultFS).set(func(f *faultFS) { f.usage = nil })
	must(t, s.Checkpoint(bg))
}
