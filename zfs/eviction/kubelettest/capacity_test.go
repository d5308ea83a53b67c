package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/cadvisor/lib/fs"
	cadvisorzfs "github.com/google/cadvisor/lib/fs/zfs"

	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/eviction"
)

// standIn puts a program zfs first in PATH that prints text and ends with code.
func standIn(t *testing.T, text string, code int) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = 'list -Hp -o used,available,usedbydataset tank/k8s' ] || exit 9\nprintf '%s'\nexit %d\n", text, code)
	if err := os.WriteFile(filepath.Join(dir, "zfs"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// TestCapacity holds the capacity that is foretold against what cAdvisor makes of the
// answer of zfs.
func TestCapacity(t *testing.T) {
	v, err := eviction.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	space := zfs.Space{Name: "tank/k8s", Used: 920 << 30, Available: 80 << 30, UsedByDataset: 20 << 30, Referenced: 20 << 30}
	standIn(t, fmt.Sprintf(`%d\t%d\t%d\n`, space.Used, space.Available, space.UsedByDataset), 0)
	capacity, free, available, err := cadvisorzfs.GetZfsStats("tank/k8s")
	if err != nil {
		t.Fatal(err)
	}
	disk := eviction.FS{Type: "zfs", Source: "tank/k8s", Dataset: &eviction.Dataset{Space: space}}
	seen := eviction.Examine(eviction.Node{
		Version: v,
		Facts:   eviction.Facts{Host: eviction.Host{DevZFS: true, ZFSProgram: "/sbin/zfs"}, NodeFS: disk, ImageFS: disk},
	}).NodeFS
	if *seen.Capacity != capacity || *seen.Available != available || free != available {
		t.Errorf("foretold are %d and %d, and they were %d and %d", *seen.Capacity, *seen.Available, capacity, available)
	}
	if capacity != 1020<<30 {
		t.Errorf("the capacity is %d GiB", capacity>>30)
	}
}

// TestWithoutZFS holds that the kernel is asked where there is no /dev/zfs, and that a
// zfs that fails is an error and no reason to ask the kernel.
func TestWithoutZFS(t *testing.T) {
	standIn(t, "", 1)
	if _, _, _, err := cadvisorzfs.GetZfsStats("tank/k8s"); err == nil {
		t.Error("a zfs that fails is no error")
	}
	if _, err := os.Stat("/dev/zfs"); !errors.Is(err, os.ErrNotExist) {
		t.Skip("there is /dev/zfs here")
	}
	if _, err := cadvisorzfs.NewPlugin().GetStats("tank/k8s", fs.PartitionInfo{}); !errors.Is(err, fs.ErrFallbackToVFS) {
		t.Errorf("without /dev/zfs: %v", err)
	}
}
