package vfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// zfsMagic is the file system type of OpenZFS, which x/sys does not name.
const zfsMagic = 0x2fc12fc1

func typeName(magic int64) string {
	switch uint32(magic) {
	case zfsMagic:
		return "zfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	}
	return fmt.Sprintf("0x%x", uint32(magic))
}

// Preallocates tells whether space reserved ahead spares work at each sync on
// a file system of this type (see Usage.Type). On a copy-on-write file system
// it spares nothing: each write goes to a new place.
func Preallocates(fsType string) bool {
	switch fsType {
	case "ext4", "xfs", "overlay":
		return true
	}
	return false
}

// IsNoSpace tells whether err says that the file system, or a quota on it, is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
