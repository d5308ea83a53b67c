package simfs

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

func newFS(t *testing.T) (*FS, string) {
	t.Helper()
	root := t.TempDir()
	s, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	return s, root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, s *FS, path string) vfs.File {
	t.Helper()
	f, err := s.Create(path)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, f vfs.File, text string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(text), off)
	must(t, err)
}

// images collects the contents that name has in many images; "absent" if it
// is in none.
func images(t *testing.T, s *FS, name string) map[string]bool {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 300 {
		dst := t.TempDir()
		must(t, s.Image(dst, rnd))
		b, err := os.ReadFile(filepath.Join(dst, name))
		if errors.Is(err, fs.ErrNotExist) {
			seen["absent"] = true
			continue
		}
		must(t, err)
		seen[string(b)] = true
	}
	return seen
}

func TestSyncedContentStaysUnsyncedMay(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a"))
	write(t, f, "durable", 0)
	must(t, f.Sync())
	must(t, s.SyncDir(root))
	write(t, f, "DUR", 0)
	seen := images(t, s, "a")
	if len(seen) != 2 || !seen["durable"] || !seen["DURable"] {
		t.Errorf("got %v", seen)
	}
	must(t, f.Sync())
	if seen := images(t, s, "a"); len(seen) != 1 || !seen["DURable"] {
		t.Errorf("after sync: got %v", seen)
	}
}

func TestWritesAreTornAtSectors(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a"))
	write(t, f, strings.Repeat("-", 1200), 0)
	must(t, f.Sync())
	must(t, s.SyncDir(root))
	write(t, f, strings.Repeat("x", 800), 100)
	torn := false
	for got := range images(t, s, "a") {
		parts := []string{got[100:512], got[512:900]}
		for _, p := range parts {
			if strings.Trim(p, "x") != "" && strings.Trim(p, "-") != "" {
				t.Fatalf("torn within a sector: %q", p)
			}
		}
		torn = torn || parts[0][0] != parts[1][0]
		if strings.Trim(got[:100]+got[900:], "-") != "" {
			t.Fatal("bytes beside the write changed")
		}
	}
	if !torn {
		t.Error("no image has a torn write")
	}
}

func TestNamesPersistInOrder(t *testing.T) {
	s, root := newFS(t)
	create(t, s, filepath.Join(root, "a"))
	must(t, s.SyncDir(root))
	create(t, s, filepath.Join(root, "b"))
	must(t, s.Rename(filepath.Join(root, "b"), filepath.Join(root, "c")))
	must(t, s.Remove(filepath.Join(root, "a")))
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 100 {
		dst := t.TempDir()
		must(t, s.Image(dst, rnd))
		names, err := vfs.OS.List(dst)
		must(t, err)
		seen[strings.Join(names, "")] = true
	}
	if len(seen) != 4 || !seen["a"] || !seen["ab"] || !seen["ac"] || !seen["c"] {
		t.Errorf("got %v", seen)
	}
}

func TestReplacedFileIsKeptUntilTheRenameIsDurable(t *testing.T) {
	s, root := newFS(t)
	// Both are written past the seam, as the tree does.
	must(t, os.WriteFile(filepath.Join(root, "db"), []byte("old"), 0o600))
	must(t, s.SyncDir(root))
	must(t, s.Commit(filepath.Join(root, "db"), func() error {
		return os.WriteFile(filepath.Join(root, "db"), []byte("old2"), 0o600)
	}))
	must(t, s.SyncDir(root))
	must(t, os.WriteFile(filepath.Join(root, "tmp"), []byte("new"), 0o600))
	must(t, s.Rename(filepath.Join(root, "tmp"), filepath.Join(root, "db")))
	if seen := images(t, s, "db"); len(seen) != 2 || !seen["old2"] || !seen["new"] {
		t.Errorf("got %v", seen)
	}
}

func TestCrashAtEndsEverything(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a")) // 1
	must(t, s.SyncDir(root))                    // 2
	s.CrashAt(4)
	write(t, f, "one", 0) // 3
	if err := f.Sync(); !errors.Is(err, ErrPowerCut) {
		t.Fatalf("sync: got %v", err)
	}
	if _, err := f.WriteAt([]byte("two"), 0); !errors.Is(err, ErrPowerCut) {
		t.Errorf("write: got %v", err)
	}
	if _, err := s.List(root); !errors.Is(err, ErrPowerCut) {
		t.Errorf("list: got %v", err)
	}
	must(t, os.WriteFile(filepath.Join(root, "late"), nil, 0o600))
	if seen := images(t, s, "a"); !seen[""] || !seen["one"] {
		t.Errorf("got %v", seen)
	}
	if seen := images(t, s, "late"); len(seen) != 1 || !seen["absent"] {
		t.Errorf("a file made after the cut: got %v", seen)
	}
	if s.Ops() != 4 || !s.WasCut() {
		t.Errorf("ops %d, cut %v", s.Ops(), s.WasCut())
	}
}

func TestFailAt(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a"))
	s.FailAt(2, syscall.EIO)
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	write(t, f, "y", 0)
	s.SetHook(func(op Op) error {
		if op.Kind == Write {
			return &ShortWrite{N: 2, Err: syscall.EIO}
		}
		return nil
	})
	n, err := f.WriteAt([]byte("abcd"), 0)
	if n != 2 || !errors.Is(err, syscall.EIO) {
		t.Errorf("short write: got %d, %v", n, err)
	}
}

// TestFailedSyncLosesTheWrite is what Linux does: the content can be read, but
// is taken for written.
func TestFailedSyncLosesTheWrite(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a"))
	must(t, s.SyncDir(root))
	write(t, f, "one", 0)
	s.FailAt(s.Ops()+1, syscall.EIO)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	must(t, f.Sync())
	got := make([]byte, 3)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != "one" {
		t.Errorf("read %q, %v", got, err)
	}
	if seen := images(t, s, "a"); len(seen) != 1 || !seen[""] {
		t.Errorf("after a second sync: got %v", seen)
	}
	write(t, f, "one", 0)
	must(t, f.Sync())
	if seen := images(t, s, "a"); len(seen) != 1 || !seen["one"] {
		t.Errorf("written again: got %v", seen)
	}
}

func TestFreeSpace(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a"))
	s.SetFree(10)
	write(t, f, "12345678", 0)
	n, err := f.WriteAt([]byte("abcd"), 8)
	if n != 2 || !vfs.IsNoSpace(err) {
		t.Fatalf("got %d, %v", n, err)
	}
	write(t, f, "over", 0) // in place
	if err := f.Preallocate(11); !vfs.IsNoSpace(err) {
		t.Errorf("preallocate: got %v", err)
	}
	must(t, f.Truncate(4))
	if u, err := s.Usage(root); err != nil || u.Free != 6 {
		t.Errorf("after truncate: %+v, %v", u, err)
	}
	must(t, s.Remove(filepath.Join(root, "a")))
	if u, err := s.Usage(root); err != nil || u.Free != 10 {
		t.Errorf("after remove: %+v, %v", u, err)
	}
}

func TestPreallocateFollowsTheType(t *testing.T) {
	s, root := newFS(t)
	f := create(t, s, filepath.Join(root, "a"))
	for fsType, want := range map[string]int64{"zfs": 0, "ext4": 4096} {
		s.SetType(fsType)
		must(t, f.Preallocate(4096))
		if n, err := f.Size(); err != nil || n != want {
			t.Errorf("%s: size %d, %v", fsType, n, err)
		}
		must(t, f.Truncate(0))
	}
}

func TestCommitCrash(t *testing.T) {
	s, root := newFS(t)
	path := filepath.Join(root, "db")
	before := bytes.Repeat([]byte{'a'}, 4*pageSize)
	after := bytes.Repeat([]byte{'b'}, 5*pageSize)
	must(t, os.WriteFile(path, before, 0o600))
	must(t, s.SyncDir(root))
	s.CrashAt(s.Ops() + 1)
	err := s.Commit(path, func() error { return os.WriteFile(path, after, 0o600) })
	if !errors.Is(err, ErrPowerCut) {
		t.Fatal(err)
	}
	var kinds [4]bool
	for got := range images(t, s, "db") {
		meta := strings.Contains(got[:2*pageSize], "b")
		dataA, dataB := strings.Contains(got[2*pageSize:], "a"), strings.Contains(got[2*pageSize:], "b")
		if meta && (dataA || len(got) != len(after)) {
			t.Fatal("a meta page before the data")
		}
		kinds[0] = kinds[0] || got == string(before)
		kinds[1] = kinds[1] || dataA && dataB
		kinds[2] = kinds[2] || meta && got != string(after)
		kinds[3] = kinds[3] || got == string(after)
	}
	if kinds != [4]bool{true, true, true, true} {
		t.Errorf("missing kinds of images: %v", kinds)
	}
}

func TestPunchHoleCrash(t *testing.T) {
	s, root := newFS(t)
	path := filepath.Join(root, "db")
	before := bytes.Repeat([]byte{'a'}, 8*pageSize)
	must(t, os.WriteFile(path, before, 0o600))
	must(t, s.SyncDir(root))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	s.CrashAt(s.Ops() + 1)
	if err := s.PunchHole(path, f, 3*pageSize, 3*pageSize); !errors.Is(err, ErrPowerCut) {
		t.Fatal(err)
	}
	after := bytes.Clone(before)
	clear(after[3*pageSize : 6*pageSize])
	var kinds [3]bool
	for got := range images(t, s, "db") {
		if len(got) != len(before) {
			t.Fatalf("%d bytes", len(got))
		}
		for i := range got {
			if got[i] != before[i] && got[i] != after[i] {
				t.Fatalf("byte %d is %q", i, got[i])
			}
		}
		kinds[0] = kinds[0] || got == string(before)
		kinds[1] = kinds[1] || got == string(after)
		kinds[2] = kinds[2] || got != string(before) && got != string(after)
	}
	if kinds != [3]bool{true, true, true} {
		t.Errorf("missing kinds of images: %v", kinds)
	}
}

func TestImageIsDeterministic(t *testing.T) {
	s, root := newFS(t)
	for _, name := range []string{"a", "b", "c"} {
		f := create(t, s, filepath.Join(root, name))
		write(t, f, strings.Repeat(name, 5000), 0)
		must(t, f.Truncate(3000))
	}
	sum := func() string {
		dst := t.TempDir()
		must(t, s.Image(dst, rand.New(rand.NewPCG(7, 7))))
		var all strings.Builder
		names, err := vfs.OS.List(dst)
		must(t, err)
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(dst, name))
			must(t, err)
			all.WriteString(name)
			all.Write(b)
		}
		return all.String()
	}
	if first, second := sum(), sum(); first != second {
		t.Error("two images of one state and seed differ")
	}
}

// TestRenameBetweenDirectories: after a power cut the file is in one of the two at least, and, once
// both are synced, in the new one only.
func TestRenameBetweenDirectories(t *testing.T) {
	s, root := newFS(t)
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	must(t, s.MkdirAll(a))
	must(t, s.MkdirAll(b))
	f := create(t, s, filepath.Join(a, "x"))
	write(t, f, "text", 0)
	must(t, f.Sync())
	must(t, f.Close())
	must(t, s.SyncDir(a))
	must(t, s.Rename(filepath.Join(a, "x"), filepath.Join(b, "y")))
	places := func() (seen map[string]bool) {
		seen = map[string]bool{}
		for seed := range uint64(40) {
			dst := t.TempDir()
			must(t, s.Image(dst, rand.New(rand.NewPCG(seed, 1))))
			where := ""
			for _, name := range []string{"a/x", "b/y"} {
				if text, err := os.ReadFile(filepath.Join(dst, name)); err == nil && string(text) == "text" {
					where += name + " "
				}
			}
			seen[where] = true
		}
		return seen
	}
	if seen := places(); seen[""] || !seen["a/x "] || !seen["b/y "] {
		t.Errorf("before a sync: %v", seen)
	}
	must(t, s.SyncDir(a)) // what takes the name away takes the new one along
	if seen := places(); len(seen) != 1 || !seen["b/y "] {
		t.Errorf("after a sync: %v", seen)
	}
	must(t, s.Rename(b, filepath.Join(root, "c")))
	if text, err := os.ReadFile(filepath.Join(root, "c", "y")); err != nil || string(text) != "text" {
		t.Errorf("in the renamed directory: %q, %v", text, err)
	}
	if _, err := s.OpenRead(filepath.Join(b, "y")); err == nil {
		t.Error("the directory has its old name still")
	}
}
