package eviction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tarn-kv/tarn/zfs"
)

// thisMachine is the machine that the process runs on.
type thisMachine struct{}

func (thisMachine) resolve(path string) (found, device string, missing bool, err error) {
	if found, err = zfs.ExistingPath(path); err != nil {
		return "", "", false, err
	}
	var stat unix.Stat_t
	if err := unix.Stat(found, &stat); err != nil {
		return "", "", false, &os.PathError{Op: "stat", Path: found, Err: err}
	}
	_, err = os.Lstat(path)
	return found, fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)), errors.Is(err, os.ErrNotExist), nil
}

func (thisMachine) statfs(path string) (Statfs, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Statfs{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	unit := uint64(s.Frsize)
	return Statfs{
		Magic: uint32(s.Type), Capacity: unit * s.Blocks, Available: unit * s.Bavail,
		Inodes: s.Files, InodesFree: s.Ffree,
	}, nil
}

func (thisMachine) mounts() ([]zfs.Mount, error) { return zfs.ReadMounts(zfs.MountTable) }

func (thisMachine) host(searchPath string) Host { return readHost("/", searchPath) }

// readHost reads what there is below root, which is / but in tests.
func readHost(root, searchPath string) Host {
	h := Host{SearchPath: searchPath, Root: os.Geteuid() == 0}
	_, err := os.Stat(filepath.Join(root, "dev/zfs"))
	h.DevZFS = err == nil || !errors.Is(err, os.ErrNotExist) // the kubelet's rule
	for _, dir := range filepath.SplitList(searchPath) {
		program := filepath.Join(dir, "zfs")
		if info, err := os.Stat(filepath.Join(root, program)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			h.ZFSProgram = program
			break
		}
	}
	// Without the right to read them, it is not known to be a container.
	if kind, err := os.ReadFile(filepath.Join(root, "run/systemd/container")); err == nil {
		h.Container = strings.TrimSpace(string(kind))
	} else if environ, err := os.ReadFile(filepath.Join(root, "proc/1/environ")); err == nil {
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if kind, ok := strings.CutPrefix(variable, "container="); ok {
				h.Container = kind
			}
		}
	}
	if ids, err := os.ReadFile(filepath.Join(root, "proc/self/uid_map")); err == nil {
		f := strings.Fields(string(ids)) // within, outside, how many
		h.Unprivileged = len(f) >= 3 && (f[0] != "0" || f[1] != "0" || f[2] != "4294967295")
	}
	return h
}

func (thisMachine) space(ctx context.Context, names ...string) ([]zfs.Space, error) {
	if len(names) == 0 {
		return zfs.ReadAllSpace(ctx)
	}
	return zfs.ReadSpace(ctx, names...)
}

func (thisMachine) kubeletZFS(ctx context.Context, h Host, dataset string) error {
	if ours, err := exec.LookPath("zfs"); err == nil && ours == h.ZFSProgram {
		return nil
	}
	return zfs.AskAsKubelet(ctx, h.ZFSProgram, h.SearchPath, dataset)
}

func (thisMachine) poolHealth(ctx context.Context, pool string) (string, error) {
	return zfs.PoolHealth(ctx, pool)
}

func (thisMachine) snapshots(ctx context.Context, dataset string, below bool) ([]string, error) {
	return zfs.SnapshotNames(ctx, dataset, below)
}
