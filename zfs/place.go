package zfs

import (
	"context"
	"fmt"
	"path/filepath"
)

// Place is where a directory is.
type Place struct {
	Dir     string // absolute, with links resolved
	FSType  string // of the file system, as the kernel names it
	Dataset string // "" if that is not ZFS
	// Point is where the whole dataset is mounted. It is "" if only a part of it
	// is to be seen here, as through a bind mount.
	Point string
	// Rel is the directory within the dataset, "." for the dataset itself.
	Rel string
}

// Locate finds the file system and dataset of a directory, or of the place where
// it would be made.
func Locate(ctx context.Context, dir string) (Place, error) {
	p, err := inTime(ctx, func() (Place, error) {
		mounts, err := ReadMounts(MountTable)
		if err != nil {
			return Place{}, err
		}
		return locate(mounts, dir)
	})
	if err != nil {
		return Place{}, fmt.Errorf("find the dataset of %s: %w", dir, hanging(dir, err))
	}
	return p, nil
}

func locate(mounts []Mount, dir string) (Place, error) {
	path, err := resolve(dir)
	if err != nil {
		return Place{}, err
	}
	m, ok := MountOf(mounts, path)
	if !ok {
		return Place{}, fmt.Errorf("%s lists no root file system", MountTable)
	}
	p := Place{Dir: path, FSType: m.FSType}
	if m.FSType != "zfs" {
		return p, nil
	}
	rel, err := filepath.Rel(m.Point, path)
	if err != nil {
		return Place{}, err
	}
	p.Dataset = m.Source
	p.Rel = filepath.Join(".", m.Root, rel)
	for _, other := range mounts {
		if other.Source == m.Source && other.FSType == "zfs" && other.Root == "/" {
			// A later mount can hide this one.
			if top, ok := MountOf(mounts, other.Point); ok && top.id == other.id {
				p.Point = other.Point
			}
		}
	}
	return p, nil
}

// resolve is dir with the links on its way resolved, also if it is yet to be made.
func resolve(dir string) (string, error) {
	there, err := ExistingPath(dir)
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		if path, err := filepath.EvalSymlinks(at); err == nil && path == there {
			rel, err := filepath.Rel(at, abs)
			return filepath.Join(there, rel), err
		}
		if at == filepath.Dir(at) {
			return there, nil
		}
	}
}
