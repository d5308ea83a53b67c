package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/wal"
)

func TestExpectID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	other := strings.Repeat("ab", 16)
	_, err := Open(Options{Dir: dir, ExpectID: other})
	wantErr(t, err, ErrForeign)
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made for a store that is elsewhere")
	}
	s := openStore(t, Options{Dir: dir})
	id := s.ID()
	if len(id) != 32 {
		t.Errorf("ID %q", id)
	}
	must(t, s.Close())
	_, err = Open(Options{Dir: dir, ExpectID: other})
	wantErr(t, err, ErrForeign)
	if !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), other) {
		t.Errorf("the error does not name both stores: %v", err)
	}
	s = openStore(t, Options{Dir: dir, ExpectID: id})
	if s.ID() != id || s.Term() != firstTerm+1 {
		t.Errorf("ID %q, term %d", s.ID(), s.Term())
	}
}

// A file of etcd becomes this store's only if no other store is expected.
func TestExpectIDLeavesEtcdsFileAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, treeName)
	tr, err := tree.Open(tree.Options{Path: path})
	must(t, err)
	must(t, tr.Close())
	before, err := os.ReadFile(path)
	must(t, err)
	_, err = Open(Options{Dir: dir, ExpectID: strings.Repeat("ab", 16)})
	wantErr(t, err, ErrForeign)
	after, err := os.ReadFile(path)
	if must(t, err); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
	openStore(t, Options{Dir: dir})
}

func TestOpenInUse(t *testing.T) {
	s := testStore(t)
	_, err := Open(Options{Dir: s.opts.Dir})
	wantErr(t, err, ErrInUse)
	if !strings.Contains(err.Error(), "pid") {
		t.Errorf("the error does not name the process: %v", err)
	}
	put(t, s, "a", "") // unharmed
	_, err = Check(bg, s.opts.Dir)
	wantErr(t, err, ErrInUse)
}

func TestOpenEtcdsDirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	_, err := Open(Options{Dir: dir})
	wantErr(t, err, ErrForeign)
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("the directory has %v now", names)
	}
}

// damagedStore makes a store with some data in the tree and some in the log, as a
// crash leaves it: the directory is a copy made while the store was open.
func damagedStore(t *testing.T, damage func(dir string)) (dir string) {
	t.Helper()
	s := testStore(t)
	for range 20 {
		put(t, s, "a", strings.Repeat("x", 1000))
	}
	must(t, s.Checkpoint(bg))
	for range 5 {
		put(t, s, "b", strings.Repeat("y", 1000))
	}
	dir = t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(s.opts.Dir)))
	must(t, os.Remove(filepath.Join(dir, "LOCK")))
	damage(dir)
	return dir
}

func segment(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, walName, "*.wal"))
	must(t, err)
	if len(names) == 0 {
		t.Fatal("the log has no segment")
	}
	return names[len(names)-1]
}

// overwrite changes what stands where a mark is found the nth time.
func overwrite(t *testing.T, name, mark string, nth int) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	at := 0
	for range nth {
		i := bytes.Index(b[at:], []byte(mark))
		if i < 0 {
			t.Fatalf("%q is not in %s", mark, name)
		}
		at += i + len(mark)
	}
	b[at-1] ^= 0x10
	must(t, os.WriteFile(name, b, 0o600))
}

func TestDamage(t *testing.T) {
	mark := strings.Repeat("y", 1000)
	for _, c := range []struct {
		name     string
		damage   func(dir string)
		finding  bool // Check finds it
		open     error
		torn     bool
		revision int64
	}{
		{name: "none", damage: func(string) {}, revision: 26},
		{name: "torn last frame", damage: func(dir string) { overwrite(t, segment(t, dir), mark, 5) }, torn: true, revision: 25},
		{name: "frame in the midst", damage: func(dir string) { overwrite(t, segment(t, dir), mark, 3) }, finding: true, open: ErrDamaged},
		{name: "no log", damage: func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, walName))) }, finding: true, open: ErrDamaged},
		{name: "tree cut off", damage: func(dir string) { must(t, os.Truncate(filepath.Join(dir, treeName), 9000)) }, finding: true, open: ErrDamaged},
		{name: "not a tree", damage: func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, treeName), bytes.Repeat([]byte("garbage "), 4096), 0o600))
		}, finding: true, open: ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := damagedStore(t, c.damage)
			before := contents(t, dir)
			r, err := Check(bg, dir)
			must(t, err)
			if (len(r.Findings) > 0) != c.finding || !c.finding && (r.Revision != c.revision || r.TornTail != c.torn || r.Hash == 0 || len(r.StoreID) != 32) {
				t.Errorf("report %+v", r)
			}
			if contents(t, dir) != before {
				t.Error("Check changed something")
			}
			s, err := Open(Options{Dir: dir})
			if c.open != nil {
				wantErr(t, err, c.open)
				if contents(t, dir) != before {
					t.Error("Open changed something")
				}
				return
			}
			must(t, err)
			defer s.Close()
			if h, err := s.HashKV(bg, 0); err != nil || h.Hash != r.Hash || s.Revision() != c.revision {
				t.Errorf("revision %d, hash %08x, %v; the report is %+v", s.Revision(), h.Hash, err, r)
			}
		})
	}
}

// contents is all files of a directory but its lock.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		b, err := os.ReadFile(path)
		all.WriteString(path)
		all.Write(b)
		return err
	}))
	return all.String()
}

func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, walName, "*.wal"))
	must(t, err)
	return files
}

// A restored snapshot has no log; so has a store whose log was lost, and only a person can tell.
func TestAllowMissingLog(t *testing.T) {
	for _, remove := range []func(dir string){
		func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, walName))) },
		func(dir string) {
			for _, f := range segmentFiles(t, dir) {
				must(t, os.Remove(f))
			}
		},
	} {
		dir := damagedStore(t, remove)
		_, err := Open(Options{Dir: dir})
		wantErr(t, err, ErrDamaged)
		s, err := Open(Options{Dir: dir, AllowMissingLog: true})
		must(t, err)
		if s.Revision() != 21 {
			t.Errorf("revision %d", s.Revision())
		}
		put(t, s, "a", "1")
		must(t, s.Close())
		s, err = Open(Options{Dir: dir}) // now it has one
		must(t, err)
		must(t, s.Close())
	}
}

// A store that was never checkpointed has all its data in the log.
func TestLogLostBeforeFirstCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir})
	must(t, s.Close())
	must(t, os.RemoveAll(filepath.Join(dir, walName)))
	_, err := Open(Options{Dir: dir})
	wantErr(t, err, ErrDamaged)
}

func TestLogWithoutTree(t *testing.T) {
	dir := damagedStore(t, func(dir string) { must(t, os.Remove(filepath.Join(dir, treeName))) })
	_, err := Open(Options{Dir: dir})
	wantErr(t, err, ErrDamaged)
	if r, err := Check(bg, dir); err != nil || len(r.Findings) != 1 {
		t.Errorf("check: %+v, %v", r, err)
	}
}

func TestLogOfAnotherStore(t *testing.T) {
	dir := damagedStore(t, func(dir string) {
		other := damagedStore(t, func(string) {})
		must(t, os.RemoveAll(filepath.Join(dir, walName)))
		must(t, os.CopyFS(filepath.Join(dir, walName), os.DirFS(filepath.Join(other, walName))))
	})
	_, err := Open(Options{Dir: dir})
	wantErr(t, err, wal.ErrForeign)
	if r, err := Check(bg, dir); err != nil || len(r.Findings) == 0 {
		t.Errorf("check: %+v, %v", r, err)
	}
}
