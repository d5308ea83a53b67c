package zfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Open gives the data directory as a snapshot holds it. It is read through
// .zfs/snapshot, which the kernel mounts by itself; where that does not work, as
// in a container or with snapdir=disabled, root gets a mount of its own.
func (d *Dataset) Open(ctx context.Context, name string) (string, func() error, error) {
	s, err := d.get(ctx, name)
	if err != nil {
		return "", nil, err
	}
	full := d.name + "@" + s.Name
	var cause error
	if d.point == "" {
		cause = ErrNotMounted
	} else {
		root := filepath.Join(d.point, ".zfs", "snapshot", s.Name)
		if _, cause = stat(ctx, filepath.Join(root, ".")); cause == nil {
			dir := filepath.Join(root, d.rel)
			if _, err := stat(ctx, dir); err != nil {
				return "", nil, noDataDir(full, err)
			}
			return dir, func() error { return nil }, nil
		}
	}
	if os.Geteuid() != 0 {
		step := "run it as root, which can mount the snapshot alone"
		if errors.Is(cause, ErrNotMounted) {
			step = "mount it (zfs mount " + d.name + "), or " + step
		}
		return "", nil, fmt.Errorf("open the snapshot %s: the files of %s can not be read: %w; %s", full, d.name, cause, step)
	}
	return d.mountAlone(ctx, full)
}

// stat is os.Stat that ctx ends: it hangs when the pool is suspended.
func stat(ctx context.Context, path string) (os.FileInfo, error) {
	info, err := inTime(ctx, func() (os.FileInfo, error) { return os.Stat(path) })
	return info, hanging(path, err)
}

// hanging says what it means that a file system did not answer in time.
func hanging(path string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("look for %s: %w: %w; see zpool status: a suspended pool answers nothing", path, ErrNoAnswer, err)
	}
	return err
}

// mountAlone mounts a snapshot, read-only as all are, in a directory of its own.
func (d *Dataset) mountAlone(ctx context.Context, full string) (string, func() error, error) {
	point, err := os.MkdirTemp("", "tarn-snapshot-")
	if err != nil {
		return "", nil, fmt.Errorf("open the snapshot %s: %w", full, err)
	}
	if _, err := output(ctx, "mount", "-t", "zfs", "-o", "ro", full, point); err != nil {
		return "", nil, errors.Join(fmt.Errorf("open the snapshot %s: %w", full, err), os.Remove(point))
	}
	cleanup := func() error {
		// Not with ctx: what was mounted is unmounted after a cancelled run, too.
		if _, err := output(context.WithoutCancel(ctx), "umount", point); err != nil {
			return fmt.Errorf("close the snapshot %s: %w", full, err)
		}
		return os.Remove(point)
	}
	dir := filepath.Join(point, d.rel)
	if _, err := stat(ctx, dir); err != nil {
		return "", nil, errors.Join(noDataDir(full, err), cleanup())
	}
	return dir, cleanup, nil
}

func noDataDir(full string, err error) error {
	return fmt.Errorf("open the snapshot %s: the data directory is not in it; was it made later? %w", full, err)
}

// CheckFiles is nil for each snapshot that is there: ZFS checks what it reads.
func (d *Dataset) CheckFiles(ctx context.Context, name string) error {
	_, err := d.get(ctx, name)
	return err
}
