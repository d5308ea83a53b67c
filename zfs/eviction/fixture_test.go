package eviction

import "github.com/tarn-kv/tarn/zfs"

// dataset makes the facts of a file system on a dataset of its own, mounted at path. used
// is split into what the dataset holds itself, its snapshots and what is below it.
func dataset(name, path string, own, snapshots, children, available uint64) FS {
	return FS{
		Path: path, Found: path, Device: "0:" + name, Type: "zfs", Source: name, Point: path,
		Statfs: Statfs{
			Magic: MagicZFS, Capacity: own + available, Available: available,
			Inodes: available/dnodeSize + 1000, InodesFree: available / dnodeSize,
		},
		Dataset: &Dataset{
			Space: zfs.Space{
				Name: name, Used: own + snapshots + children, Available: available, Referenced: own,
				UsedByDataset: own, UsedBySnapshots: snapshots, UsedByChildren: children,
				Mountpoint: path, Mounted: "yes", CanMount: "on",
			},
			Ancestors:  []zfs.Space{{Name: zfs.PoolOf(name), Used: own + snapshots + children + gib, Available: available}},
			PoolHealth: "ONLINE",
		},
	}
}

// ext4 makes the facts of an ordinary file system.
func ext4(source, path string, capacity, available uint64) FS {
	return FS{
		Path: path, Found: path, Device: "8:1", Type: "ext4", Source: source, Point: "/",
		Statfs: Statfs{Magic: 0xef53, Capacity: capacity, Available: available, Inodes: 1 << 20, InodesFree: 1 << 19},
	}
}

// plain makes a node one without ZFS: one disk for all.
func plain(n *Node) {
	n.Facts.NodeFS, n.Facts.ImageFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib), ext4("/dev/sda1", imagePath, 100*gib, 50*gib)
}

const (
	nodePath  = "/var/lib/kubelet"
	imagePath = "/var/lib/rancher/k3s/agent/containerd/io.containerd.snapshotter.v1.overlayfs"
)

var (
	v135  = mustVersion("v1.35.4+k3s1")
	v1360 = mustVersion("v1.36.0+k3s1")
	v136  = mustVersion("v1.36.3+k3s1")
	v137  = mustVersion("v1.37.2+k3s1")
)

func mustVersion(text string) Version {
	v, err := ParseVersion(text)
	if err != nil {
		panic(err)
	}
	return v
}

// goodHost is a machine with the programs of ZFS where the kubelet finds them.
var goodHost = Host{DevZFS: true, SearchPath: systemdPath, ZFSProgram: "/usr/sbin/zfs", Root: true}

// healthy is a node with two datasets in one pool, nothing in the way, and a good
// configuration.
func healthy() Node {
	n := Node{
		Version: v137,
		Facts: Facts{
			Host:    goodHost,
			Layout:  Layout{Kind: LayoutK3s, KubeletRoot: nodePath, Snapshotter: imagePath, DataDir: k3sDataDir},
			NodeFS:  dataset("tank/kubelet", nodePath, 5*gib, 0, 0, 100*gib),
			ImageFS: dataset("tank/containerd", imagePath, 10*gib, 0, 0, 100*gib),
		},
	}
	n.Facts.NodeFS.Dataset.Ancestors[0].Used = 20 * gib
	n.Facts.ImageFS.Dataset.Ancestors[0].Used = 20 * gib
	plan, err := NewPlan(n)
	if err != nil {
		panic(err)
	}
	n.Config = plan.Over(nil, "90-tarn-zfs.conf")
	n.Config.Unit = &Unit{Name: "k3s.service", MountsFor: []string{nodePath, imagePath}}
	return n
}

// k3sHard is what k3s has by itself.
func k3sHard() map[string]Setting {
	return settings(OriginDropIn, "00-k3s-defaults.conf", map[string]string{NodeFSAvailable: "5%", ImageFSAvailable: "5%"})
}

// capacityBug is a single dataset with 900 GiB in snapshots and datasets below it, and
// 80 GiB free.
func capacityBug() Node {
	n := healthy()
	n.Facts.NodeFS = dataset("tank/k8s", "/var/lib", 20*gib, 400*gib, 500*gib, 80*gib)
	n.Facts.ImageFS = n.Facts.NodeFS
	n.Facts.NodeFS.Path, n.Facts.ImageFS.Path = nodePath, imagePath
	n.Config = &Config{Hard: DefaultHard(), ConfigFile: true}
	return n
}
