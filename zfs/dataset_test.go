package zfs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

func zfsOK(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("zfs", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("zfs %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// datasetSubject is the data directory store in a dataset.
func datasetSubject(t *testing.T, dataset, mountpoint string) subject {
	t.Helper()
	dir := filepath.Join(mountpoint, "store")
	put(t, dir, "tree.db", "text")
	d, err := OpenDataset(t.Context(), dataset, dir)
	if err != nil {
		t.Fatal(err)
	}
	return subject{
		Snapshots: d, dir: dir,
		foreign: func(t *testing.T, name string) { zfsOK(t, "snapshot", dataset+"@"+name) },
		all: func(t *testing.T) (names []string) {
			for line := range strings.Lines(zfsOK(t, "list", "-H", "-d", "1", "-t", "snapshot", "-o", "name", dataset)) {
				names = append(names, strings.TrimPrefix(strings.TrimSpace(line), dataset+"@"))
			}
			return names
		},
	}
}

func TestDatasetSnapshots(t *testing.T) {
	testSnapshots(t, func(t *testing.T) subject {
		dataset, mountpoint := fakezfs.New(t).Dataset("data")
		return datasetSubject(t, dataset, mountpoint)
	})
}

func TestDatasetClonesAndNeighbours(t *testing.T) {
	dataset, mountpoint := fakezfs.New(t).Dataset("data")
	testClonesAndNeighbours(t, dataset, mountpoint)
}

// testClonesAndNeighbours: what hangs on a snapshot keeps it, and what is beside or
// below the dataset is not looked at.
func testClonesAndNeighbours(t *testing.T, dataset, mountpoint string) {
	s := datasetSubject(t, dataset, mountpoint)
	snap := s.create(t, CreateOptions{Revision: 1})
	zfsOK(t, "create", dataset+"/below")
	zfsOK(t, "snapshot", "-o", PropRevision+"=1", dataset+"/below@tarn-20261130T210507Z-r1")
	zfsOK(t, "clone", dataset+"@"+snap.Name, dataset+"-clone")
	got := s.list(t)
	if len(got) != 1 || !slices.Equal(got[0].Clones, []string{dataset + "-clone"}) {
		t.Errorf("list %+v", got)
	}
	err := s.Destroy(t.Context(), snap.Name)
	if !errors.Is(err, ErrHasClones) || !strings.Contains(err.Error(), dataset+"-clone") {
		t.Errorf("destroying the origin of a clone: %v", err)
	}
	zfsOK(t, "destroy", dataset+"-clone")
	if err := s.Destroy(t.Context(), snap.Name); err != nil {
		t.Error(err)
	}
	zfsOK(t, "list", dataset+"/below@tarn-20261130T210507Z-r1")
	// A property of the dataset makes no snapshot ours.
	zfsOK(t, "set", PropRevision+"=7", dataset)
	s.foreign(t, "tarn-20261130T210507Z-r7")
	if got := s.list(t); len(got) != 0 {
		t.Errorf("list %+v", got)
	}
}

func TestOpenDataset(t *testing.T) {
	w := fakezfs.New(t)
	dataset, mountpoint := w.Dataset("data")
	ctx := t.Context()
	if _, err := OpenDataset(ctx, "tank/none", mountpoint); !errors.Is(err, ErrNotFound) {
		t.Errorf("a dataset that is not there: %v", err)
	}
	if _, err := OpenDataset(ctx, "", t.TempDir()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a directory that is not on ZFS: %v", err)
	}
	for _, name := range []string{"-r", "tank//x", "tank/x@y", "tank/x#y", "tank/a%b", "/tank", "tank/", "tank,x"} {
		if _, err := OpenDataset(ctx, name, mountpoint); err == nil || !strings.Contains(err.Error(), "valid name") {
			t.Errorf("%q: %v", name, err)
		}
	}
	d, err := OpenDataset(ctx, dataset, filepath.Join(mountpoint, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name() != dataset || d.Rel() != "a/b" || d.Dir() != filepath.Join(mountpoint, "a/b") {
		t.Errorf("got %+v", d)
	}
	facts, err := d.Facts(ctx)
	if err != nil || facts.Mountpoint != mountpoint || facts.Name != dataset {
		t.Errorf("facts %+v, %v", facts, err)
	}
	zfsOK(t, "set", "tarn-kv:x=then there", dataset)
	props, err := getProperties(ctx, dataset, "tarn-kv:x", "tarn-kv:none", "recordsize")
	if err != nil || props["tarn-kv:x"] != (Property{"then there", "local"}) || props["tarn-kv:none"].Value != "" || props["recordsize"].Source != "default" {
		t.Errorf("properties %v, %v", props, err)
	}
}

func TestOpenSnapshotOfUnmountedDataset(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root mounts the snapshot instead, which needs real ZFS")
	}
	w := fakezfs.New(t)
	dataset, mountpoint := w.Dataset("data")
	snap := datasetSubject(t, dataset, mountpoint).create(t, CreateOptions{Revision: 1})
	w.Unmount(dataset)
	d, err := OpenDataset(t.Context(), dataset, mountpoint)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Open(t.Context(), snap.Name); !errors.Is(err, ErrNotMounted) || !strings.Contains(err.Error(), "zfs mount "+dataset) {
		t.Errorf("got %v", err)
	}
}

// A snapshot that goes while they are listed is no failure.
func TestListWhileOneGoes(t *testing.T) {
	w := fakezfs.New(t)
	s := datasetSubject(t, "tank/data", second(w.Dataset("data")))
	s.create(t, CreateOptions{Revision: 1, Hold: "x"})
	w.Fail("zfs holds", "cannot open 'tank/data@tarn-20261130T210507Z-r0': dataset does not exist", 2)
	if got := s.list(t); len(got) != 1 {
		t.Errorf("list %v", got)
	}
	w.Fail("zfs holds", "cannot open 'tank/data@tarn-20261130T210507Z-r0': dataset does not exist", 100)
	if _, err := s.List(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func second(_, b string) string { return b }

func TestCreateIsOneStep(t *testing.T) {
	w := fakezfs.New(t)
	s := datasetSubject(t, "tank/data", second(w.Dataset("data")))
	w.Fail("zfs snapshot", "cannot create snapshots : permission denied", 1)
	_, err := s.Create(t.Context(), CreateOptions{Time: someTime, Revision: 3})
	if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "zfs allow") {
		t.Errorf("got %v", err)
	}
	if w.Ran("zfs set") {
		t.Error("properties are set in a second step")
	}
	// The snapshot is there, and the error says so.
	w.Fail("zfs hold", "cannot hold snapshot 'x': permission denied", 1)
	if _, err = s.Create(t.Context(), CreateOptions{Time: someTime, Revision: 3, Hold: "x"}); err == nil || !strings.Contains(err.Error(), "is made, but not held") {
		t.Errorf("got %v", err)
	}
}

func TestDeadline(t *testing.T) {
	fakezfs.New(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	d := &Dataset{name: "tank", rel: "."}
	_, err := d.List(ctx)
	if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "zpool status tank") {
		t.Errorf("list: %v", err)
	}
	if _, err := d.Facts(ctx); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("facts: %v", err)
	}
}
