package migrate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// A directory of etcd is answered with the file in it, and a pipe is not waited for.
func TestImportOfNoFile(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "member", "snap", "db")
	must(t, os.MkdirAll(filepath.Dir(db), 0o700))
	must(t, os.WriteFile(db, []byte("x"), 0o600))
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		dir:                                  "give " + db + " with --skip-hash-check",
		filepath.Join(dir, "member"):         "give " + db + " with --skip-hash-check",
		filepath.Join(dir, "member", "snap"): "give " + db + " with --skip-hash-check",
		t.TempDir():                          "not a regular file",
		pipe:                                 "not a regular file",
	} {
		for _, skip := range []bool{false, true} {
			if _, err := ImportSnapshot(t.Context(), path, Options{DryRun: true, SkipHashCheck: skip}); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// Nothing is left in a directory that was there before, and the text says what is needed.
func TestImportWithoutSpace(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	must(t, os.Mkdir(dir, 0o700))
	sim, err := simfs.New(root)
	must(t, err)
	sim.SetHook(func(op simfs.Op) error {
		if op.Kind == simfs.Commit {
			return syscall.ENOSPC
		}
		return nil
	})
	_, err = ImportSnapshot(t.Context(), path, Options{Dir: dir, FS: sim})
	if !vfs.IsNoSpace(err) || !strings.Contains(err.Error(), "it needs about 1 MiB") || strings.Count(err.Error(), dir) != 1 {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the import left %v, %v", left, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, vfs.LockName), nil, 0o600))
	if _, err = ImportSnapshot(t.Context(), path, Options{Dir: dir, FS: sim}); !vfs.IsNoSpace(err) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("a lock file of somebody else's: %v, %v", left, err)
	}
}

// While an import is going on it is in use, and not one that was not finished.
func TestOpenDuringImport(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	dir := filepath.Join(t.TempDir(), "data")
	_, err := ImportSnapshot(t.Context(), path, Options{Dir: dir, Progress: func(step string, _, _ int64) {
		if step != StepVerify {
			return
		}
		if _, err := os.Stat(filepath.Join(dir, treeName+tree.BuildSuffix)); err != nil {
			t.Error(err)
		}
		if _, err := store.Open(store.Options{Dir: dir}); !errors.Is(err, store.ErrInUse) {
			t.Errorf("got %v", err)
		}
	}})
	must(t, err)
}

// The log of an imported store must not get lost from the first start on.
func TestImportedStoreMissesItsLog(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	dir := filepath.Join(t.TempDir(), "data")
	r, err := ImportSnapshot(t.Context(), path, Options{Dir: dir})
	must(t, err)
	checked, err := store.Check(t.Context(), dir)
	must(t, err)
	if checked.StoreID != r.StoreID || len(checked.Findings)+len(checked.Notes) > 0 {
		t.Errorf("%+v, imported as %s", checked, r.StoreID)
	}
	s, err := store.Open(store.Options{Dir: dir})
	must(t, err)
	must(t, s.Close())
	must(t, os.RemoveAll(filepath.Join(dir, walName)))
	if _, err := store.Open(store.Options{Dir: dir}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("without its log: %v", err)
	}
}
