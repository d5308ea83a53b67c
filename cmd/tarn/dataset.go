package main

import (
	"fmt"

	"github.com/tarn-kv/tarn/zfs"
)

// checkDataset makes sure that dir is on the mounted ZFS dataset: otherwise,
// with the dataset not mounted, the server would begin an empty store in the
// directory below the mount point, and the cluster would be gone.
func checkDataset(dir, dataset, mountinfo string) error {
	path, err := zfs.ExistingPath(dir)
	if err != nil {
		return fmt.Errorf("--dataset %s: look for the directory %s: %w", dataset, dir, err)
	}
	mounts, err := zfs.ReadMounts(mountinfo)
	if err != nil {
		return fmt.Errorf("--dataset %s can not be checked: %w", dataset, err)
	}
	m, ok := zfs.MountOf(mounts, path)
	if !ok {
		return fmt.Errorf("--dataset %s can not be checked: %s lists no root file system", dataset, mountinfo)
	}
	if m.FSType == "zfs" && m.Source == dataset {
		return nil
	}
	return fmt.Errorf("--dataset %s does not hold the data directory: %s is on %s %s, mounted at %s. "+
		"If the dataset is not mounted, mount it (zfs mount %s) and start again",
		dataset, dir, m.FSType, m.Source, m.Point, dataset)
}
