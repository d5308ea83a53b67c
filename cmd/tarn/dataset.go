package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const mountinfoPath = "/proc/self/mountinfo"

// checkDataset makes sure that dir is on the mounted ZFS dataset: otherwise,
// with the dataset not mounted, the server would begin an empty store in the
// directory below the mount point, and the cluster would be gone.
func checkDataset(dir, dataset, mountinfo string) error {
	path, err := existingPath(dir)
	if err != nil {
		return fmt.Errorf("--dataset %s: look for the directory %s: %w", dataset, dir, err)
	}
	f, err := os.Open(mountinfo)
	if err != nil {
		return fmt.Errorf("--dataset %s can not be checked: %w", dataset, err)
	}
	defer f.Close()
	mounts, err := parseMountinfo(f)
	if err != nil {
		return fmt.Errorf("--dataset %s can not be checked: %w", dataset, err)
	}
	m, ok := mountOf(mounts, path)
	if !ok {
		return fmt.Errorf("--dataset %s can not be checked: %s lists no root file system", dataset, mountinfo)
	}
	if m.fsType == "zfs" && m.source == dataset {
		return nil
	}
	return fmt.Errorf("--dataset %s does not hold the data directory: %s is on %s %s, mounted at %s. "+
		"If the dataset is not mounted, mount it (zfs mount %s) and start again",
		dataset, dir, m.fsType, m.source, m.point, dataset)
}

// existingPath resolves dir, or the nearest directory above it that exists:
// that is where it would be made.
func existingPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		var path string
		path, err = filepath.EvalSymlinks(dir)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			break
		}
		// A link to nowhere is not a directory that is yet to be made.
		if _, linkErr := os.Lstat(dir); linkErr == nil {
			break
		}
		dir, err = filepath.Dir(dir), nil
	}
	return "", err
}
