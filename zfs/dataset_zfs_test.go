//go:build zfs

package zfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

func TestZFSDatasetSnapshots(t *testing.T) {
	pool := zfstest.New(t)
	n := 0
	testSnapshots(t, func(t *testing.T) subject {
		n++
		name := "data" + string(rune('a'+n))
		return datasetSubject(t, pool.Dataset(t, name), pool.Path(name))
	})
}

func TestZFSClonesAndNeighbours(t *testing.T) {
	pool := zfstest.New(t)
	testClonesAndNeighbours(t, pool.Dataset(t, "data"), pool.Path("data"))
}

func TestZFSLocate(t *testing.T) {
	pool := zfstest.New(t)
	dataset := pool.Dataset(t, "my data")
	dir := filepath.Join(pool.Path("my data"), "a", "store")
	d, err := OpenDataset(t.Context(), "", dir)
	if err != nil || d.Name() != dataset || d.Rel() != "a/store" || d.Dir() != dir {
		t.Fatalf("got %+v, %v", d, err)
	}
	facts, err := d.Facts(t.Context())
	if err != nil || facts.Name != dataset || facts.Mountpoint != pool.Path("my data") || facts.Avail == 0 {
		t.Errorf("facts %+v, %v", facts, err)
	}
	// Through a bind mount of a part.
	put(t, dir, "tree.db", "text")
	bind := t.TempDir()
	zfstest.Run(t, "mount", "--bind", filepath.Dir(dir), bind)
	t.Cleanup(func() { zfstest.Run(t, "umount", bind) })
	d, err = OpenDataset(t.Context(), "", filepath.Join(bind, "store"))
	if err != nil || d.Name() != dataset || d.Rel() != "a/store" || d.Dir() != dir {
		t.Errorf("through a bind mount: %+v, %v", d, err)
	}
}

// What root opens although the dataset is not mounted, or .zfs is not to be used.
func TestZFSOpenAlone(t *testing.T) {
	pool := zfstest.New(t)
	dataset := pool.Dataset(t, "data")
	s := datasetSubject(t, dataset, pool.Path("data"))
	name := s.create(t, CreateOptions{Revision: 1}).Name
	put(t, s.dir, "tree.db", "later")
	zfstest.Run(t, "zfs", "unmount", dataset)
	d, err := OpenDataset(t.Context(), dataset, s.dir)
	if err != nil || d.Dir() != "" {
		t.Fatalf("got %+v, %v", d, err)
	}
	dir, cleanup, err := d.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "tree.db")); err != nil || string(got) != "text" {
		t.Errorf("the snapshot has %q, %v", got, err)
	}
	if os.WriteFile(filepath.Join(dir, "tree.db"), nil, 0o600) == nil {
		t.Error("the snapshot can be written to")
	}
	if err := d.Destroy(t.Context(), name); !errors.Is(err, ErrBusy) {
		t.Errorf("destroying what is mounted: %v", err)
	}
	if err := cleanup(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "tarn-snapshot-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if err := d.Destroy(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// A file that is open in .zfs/snapshot keeps the snapshot.
func TestZFSBusy(t *testing.T) {
	pool := zfstest.New(t)
	s := datasetSubject(t, pool.Dataset(t, "data"), pool.Path("data"))
	name := s.create(t, CreateOptions{Revision: 1}).Name
	dir, cleanup, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "tree.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context(), name); !errors.Is(err, ErrBusy) {
		t.Errorf("destroying what is being read: %v", err)
	}
	f.Close()
	if err := cleanup(); err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// With the pool full or the quota used up, snapshots can be destroyed, and what can
// not be done says that it is for want of space.
func TestZFSNoSpace(t *testing.T) {
	pool := zfstest.NewSized(t, 64<<20)
	dataset := pool.Dataset(t, "data", "-o", "compression=off")
	s := datasetSubject(t, dataset, pool.Path("data"))
	first := s.create(t, CreateOptions{Revision: 1}).Name
	fill := func() {
		t.Helper()
		junk := make([]byte, 1<<20)
		f, err := os.Create(filepath.Join(s.dir, "junk"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil {
			if _, err = f.Write(junk); err == nil {
				err = f.Sync()
			}
		}
		if err = explainFile(err, "", ""); !errors.Is(err, ErrNoSpace) {
			t.Fatal(err)
		}
	}
	fill()
	if snap, err := s.Create(t.Context(), CreateOptions{Time: someTime, Revision: 2}); err != nil {
		if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "make room") {
			t.Errorf("create in a full pool: %v", err)
		}
	} else if err := s.Destroy(t.Context(), snap.Name); err != nil {
		t.Errorf("destroy in a full pool: %v", err)
	}
	if err := s.Destroy(t.Context(), first); err != nil {
		t.Errorf("destroy in a full pool: %v", err)
	}
	if err := os.Remove(filepath.Join(s.dir, "junk")); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "zpool", "sync", pool.Name)
	zfstest.Run(t, "zfs", "set", "refquota=8M", dataset)
	fill()
	// Snapshots do not count against refquota.
	name := s.create(t, CreateOptions{Revision: 3}).Name
	if err := s.Destroy(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// A copy for which there is no space leaves nothing behind.
func TestZFSCopiesNoSpace(t *testing.T) {
	pool := zfstest.New(t)
	dataset := pool.Dataset(t, "data", "-o", "compression=off")
	dir := filepath.Join(pool.Path("data"), "store")
	put(t, dir, "tree.db", strings.Repeat("text", 1<<20))
	c, err := NewCopies(dir)
	if err != nil {
		t.Fatal(err)
	}
	opts := CreateOptions{Time: someTime, Revision: 1, Files: []string{"tree.db"}}
	first, err := c.Create(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "zpool", "sync", pool.Name)
	zfstest.Run(t, "zfs", "set", "refquota=9M", dataset)
	if _, err = c.Create(t.Context(), opts); !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "nothing of it is left") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(c.Root())
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := c.Destroy(t.Context(), first.Name); err != nil {
		t.Error(err)
	}
}
