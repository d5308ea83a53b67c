package migrate

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

var errDisk = errors.New("the disk is broken")

// newSim simulates a file system that holds an empty directory.
func newSim(t *testing.T) (sim *simfs.FS, dir string) {
	t.Helper()
	root := t.TempDir()
	sim, err := simfs.New(root)
	must(t, err)
	return sim, filepath.Join(root, "data")
}

// TestImportFailsAtEveryOperation: after an error nothing counts, and the same import then works. Only if
// the last sync of the directory fails the store is there already.
func TestImportFailsAtEveryOperation(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	for n := 1; ; n++ {
		sim, dir := newSim(t)
		sim.FailAt(n, errDisk)
		_, err := ImportSnapshot(t.Context(), path, Options{Dir: dir, FS: sim})
		if sim.Ops() < n {
			must(t, err)
			if n < 6 {
				t.Fatalf("only %d operations", n)
			}
			return
		}
		if err == nil {
			continue // one that removes what is not there any more
		}
		if !errors.Is(err, errDisk) {
			t.Errorf("operation %d: got %v", n, err)
		}
		sim.SetHook(nil)
		installed := errors.Is(err, tree.ErrFailed)
		names, _ := os.ReadDir(dir)
		for _, e := range names {
			if e.Name() != "LOCK" && !(installed && e.Name() == treeName) {
				t.Errorf("operation %d: %s is left after %v", n, e.Name(), err)
			}
		}
		if !installed {
			_, err = ImportSnapshot(t.Context(), path, Options{Dir: dir, FS: sim})
			must(t, err)
		}
		wantGood(t, dir)
	}
}

// TestImportPowerCut: after a power cut there is the whole store, or none, and the next import works.
func TestImportPowerCut(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	for n := 1; ; n++ {
		sim, dir := newSim(t)
		sim.CrashAt(n)
		_, err := ImportSnapshot(t.Context(), path, Options{Dir: dir, FS: sim})
		if !sim.WasCut() {
			must(t, err)
			return
		}
		for seed := range uint64(5) {
			image := t.TempDir()
			must(t, sim.Image(image, rand.New(rand.NewPCG(uint64(n), seed))))
			dir := filepath.Join(image, "data")
			if _, err := os.Stat(filepath.Join(dir, treeName)); err == nil {
				wantGood(t, dir)
				continue
			}
			wantNoStoreBegun(t, dir)
			if _, err := ImportSnapshot(t.Context(), path, Options{Dir: dir}); err != nil {
				t.Fatalf("operation %d, seed %d: the next import: %v", n, seed, err)
			}
			wantGood(t, dir)
		}
	}
}

// wantNoStoreBegun: nobody gets an empty store where an import was cut off.
func wantNoStoreBegun(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, treeName+tree.BuildSuffix)
	if _, err := os.Stat(name); err != nil {
		return // the import had not begun
	}
	if _, err := store.Open(store.Options{Dir: dir}); !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), name) {
		t.Errorf("a start after an import that was cut off: %v", err)
	}
	if _, err := store.Check(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "import that was not finished") {
		t.Errorf("a check after an import that was cut off: %v", err)
	}
}

func wantGood(t *testing.T, dir string) {
	t.Helper()
	r, err := store.Check(t.Context(), dir)
	if err != nil || len(r.Findings) > 0 || r.Revision != 150 {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join(dir, treeName+tree.BuildSuffix)); err == nil {
		t.Error("the unfinished file is still there")
	}
}
