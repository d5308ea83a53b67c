//go:build zfs

package eviction

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

func TestZFSGather(t *testing.T) {
	pool := zfstest.New(t)
	kubelet, containerd := pool.Dataset(t, "my kubelet"), pool.Dataset(t, "containerd")
	zfstest.Run(t, "zfs", "set", "quota=200M", containerd)
	write := func(dir string) {
		t.Helper()
		text := make([]byte, 8<<20)
		if _, err := rand.Read(text); err != nil { // what repeats would be compressed to next to nothing
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pool.Path("my kubelet"))
	pool.Dataset(t, "my kubelet/below")
	write(pool.Path("my kubelet/below"))
	zfstest.Run(t, "zfs", "snapshot", kubelet+"@daily")
	zfstest.Run(t, "zpool", "sync", pool.Name)

	f, err := GatherPaths(t.Context(), pool.Path("my kubelet"), filepath.Join(pool.Path("containerd"), "not/yet"), os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	node, image := f.NodeFS, f.ImageFS
	if node.Source != kubelet || image.Source != containerd || !image.Missing || node.Point != pool.Path("my kubelet") || !f.Host.DevZFS || f.Host.ZFSProgram == "" {
		t.Fatalf("%+v", f)
	}
	if node.Statfs.Magic != MagicZFS || node.Dataset == nil || image.Dataset == nil {
		t.Fatalf("%+v and %+v", node, image)
	}
	if image.Dataset.Quota != 200<<20 || image.Dataset.Available > 200<<20 || image.Statfs.Capacity > 200<<20 {
		t.Errorf("the quota is not in force: %+v and %+v", image.Dataset, image.Statfs)
	}
	if node.Dataset.Snapshots != 1 || node.Dataset.PoolHealth != "ONLINE" || node.Dataset.UsedByChildren < 8<<20 {
		t.Errorf("%+v", node.Dataset)
	}
	// What is foretold of versions that ask the kernel rests on these.
	d, s := node.Dataset, node.Statfs
	if diff := int64(d.Referenced+d.Available) - int64(s.Capacity); max(diff, -diff) > 4<<20 {
		t.Errorf("statfs says %d of capacity, and zfs %d referenced and %d available", s.Capacity, d.Referenced, d.Available)
	}
	if diff := int64(s.Available/dnodeSize) - int64(s.InodesFree); max(diff, -diff) > 1<<16 {
		t.Errorf("%d inodes are free, with %d bytes", s.InodesFree, s.Available)
	}

	zfstest.Run(t, "zfs", "unmount", containerd)
	f, err = GatherPaths(t.Context(), pool.Path("my kubelet"), pool.Path("containerd"), os.Getenv("PATH"))
	if err != nil || !slices.Equal(f.ImageFS.Hidden, []string{containerd}) {
		t.Errorf("an unmounted dataset: %+v, %v", f, err)
	}
}
