package eviction

import (
	"time"

	"github.com/tarn-kv/tarn/zfs"
)

// Facts is what there is on a node. Gather reads it; everything else in this
// package only computes from it.
type Facts struct {
	Host   Host   `json:"host"`
	Layout Layout `json:"layout"`
	// NodeFS holds the kubelet's root directory: volumes, emptyDirs, pod directories.
	NodeFS FS `json:"nodeFS"`
	// ImageFS holds containerd's snapshots: images and the writable layers of
	// containers. With containerd it is also what the kubelet calls containerfs.
	ImageFS FS `json:"imageFS"`
}

// Host is what matters of the machine as a whole.
type Host struct {
	// DevZFS tells whether /dev/zfs is there. The kubelet of 1.36 and later takes
	// that for a promise that the program zfs works.
	DevZFS bool `json:"devZFS"`
	// SearchPath is the PATH of the kubelet's process, and ZFSProgram where that
	// leads for zfs, "" if it leads nowhere.
	SearchPath string `json:"searchPath"`
	ZFSProgram string `json:"zfsProgram"`
	// Container is the kind of container that this is, such as lxc, or "".
	Container string `json:"container,omitempty"`
	// Unprivileged tells that root here is not root of the machine.
	Unprivileged bool `json:"unprivileged,omitempty"`
	// Root tells that the facts were gathered as root, as which a kubelet runs. What
	// zfs refuses to others says nothing of what it refuses to a kubelet.
	Root bool `json:"root"`
}

// Kinds of Layout.
const (
	LayoutK3s         = "k3s"
	LayoutK3sRootless = "k3s-rootless"
	LayoutKubelet     = "kubelet" // kubeadm and whatever else runs a kubelet by itself
	LayoutGiven       = "given"   // both paths were given
)

// Layout is where a distribution keeps its things. Paths are absolute; one that is
// not known is "".
type Layout struct {
	Kind string `json:"kind"` // one of the constants
	// KubeletRoot is the kubelet's --root-dir.
	KubeletRoot string `json:"kubeletRoot"`
	// ContainerdRoot is the root of containerd's configuration, and Snapshotter the
	// directory below it that the runtime names as its image file system.
	ContainerdRoot string `json:"containerdRoot"`
	Snapshotter    string `json:"snapshotter"`
	// DataDir is the data directory of k3s, "" without k3s.
	DataDir string `json:"dataDir,omitempty"`
}

// FS is one file system, found from a path as the kubelet finds it.
type FS struct {
	Path string `json:"path"` // that was asked for
	// Found is Path with links resolved, or the nearest directory above it that exists.
	Found   string `json:"found"`
	Missing bool   `json:"missing,omitempty"` // Path does not exist yet, Found stands for it
	// Device is the device number, "major:minor".
	Device string `json:"device"`
	// Type and Source are of the mount with that number: zfs and the dataset, or
	// ext4 and the block device. Source is what the kubelet calls the device.
	Type   string `json:"type"`
	Source string `json:"source"`
	Point  string `json:"mountpoint"`
	// Statfs is what the kernel says.
	Statfs Statfs `json:"statfs"`
	// Dataset is nil if this is not ZFS, or if zfs did not answer: then ZFSError
	// says why.
	Dataset  *Dataset `json:"dataset,omitempty"`
	ZFSError string   `json:"zfsError,omitempty"`
	// KubeletZFSError is what Host.ZFSProgram says instead of an answer, where that is not the program
	// that answered here.
	KubeletZFSError string `json:"kubeletZFSError,omitempty"`
	// Hidden are datasets that belong above Path by their mountpoint and are not
	// mounted now. Mounted later, they would hide what is written until then.
	Hidden []string `json:"hidden,omitempty"`
	// MountedAt is when it was mounted, zero if that is not known.
	MountedAt time.Time `json:"mountedAt,omitzero"`
}

// OnZFS tells whether the file system is ZFS.
func (f *FS) OnZFS() bool { return f.Type == "zfs" }

// Statfs is the answer of statfs(2), in bytes and numbers of inodes.
type Statfs struct {
	Magic      uint32 `json:"magic"` // MagicZFS for ZFS
	Capacity   uint64 `json:"capacity"`
	Available  uint64 `json:"available"` // to ordinary users
	Inodes     uint64 `json:"inodes"`
	InodesFree uint64 `json:"inodesFree"`
}

// MagicZFS is the f_type of ZFS.
const MagicZFS = 0x2fc12fc1

// Dataset is what zfs says of a dataset and of what is above it.
type Dataset struct {
	zfs.Space
	// Ancestors begin with the parent and end with the root dataset of the pool. It
	// is empty for the root dataset itself, and in a container that does not show them.
	Ancestors []zfs.Space `json:"ancestors,omitempty"`
	// PoolHealth is ONLINE, DEGRADED or what else zpool list says; "" is not known.
	PoolHealth string `json:"poolHealth,omitempty"`
	// Snapshots counts those of the dataset itself. SnapshotsBelow counts those of the
	// datasets that containerd's snapshotter for ZFS makes below it, without the one
	// that it makes of each.
	Snapshots      int `json:"snapshots"`
	SnapshotsBelow int `json:"snapshotsBelow"`
}

// Pool is the name of the pool.
func (d *Dataset) Pool() string { return zfs.PoolOf(d.Name) }

// Root is the root dataset of the pool, or the dataset itself if that is not seen.
func (d *Dataset) Root() *zfs.Space {
	if n := len(d.Ancestors); n > 0 {
		return &d.Ancestors[n-1]
	}
	return &d.Space
}
