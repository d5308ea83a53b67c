package harness

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/eviction"
)

const gib = 1 << 30

const (
	kubeletDir    = "/var/lib/kubelet"
	containerdDir = "/var/lib/rancher/k3s/agent/containerd/io.containerd.snapshotter.v1.overlayfs"
)

// space is what is in a dataset, in bytes.
type space struct{ own, snapshots, children, available uint64 }

// dataset is a file system on ZFS. Its numbers of inodes are those that ZFS makes up.
func dataset(name, path string, s space) eviction.FS {
	ds := zfs.Space{
		Name: name, Used: s.own + s.snapshots + s.children, Available: s.available, Referenced: s.own,
		UsedByDataset: s.own, UsedBySnapshots: s.snapshots, UsedByChildren: s.children,
		Mountpoint: path, Mounted: "yes", CanMount: "on",
	}
	pool := zfs.Space{Name: zfs.PoolOf(name), Used: ds.Used, Available: s.available}
	const objects = 12345
	return eviction.FS{
		Path: path, Found: path, Type: "zfs", Source: name, Point: path,
		Statfs: eviction.Statfs{
			Magic: eviction.MagicZFS, Capacity: s.own + s.available, Available: s.available,
			Inodes: s.available/512 + objects, InodesFree: s.available / 512,
		},
		Dataset: &eviction.Dataset{Space: ds, Ancestors: []zfs.Space{pool}, PoolHealth: "ONLINE"},
	}
}

// other is a file system that is not ZFS.
func other(source, path string, capacity, available, inodes, inodesFree uint64) eviction.FS {
	return eviction.FS{
		Path: path, Found: path, Type: "other", Source: source, Point: path,
		Statfs: eviction.Statfs{Capacity: capacity, Available: available, Inodes: inodes, InodesFree: inodesFree},
	}
}

// node puts two file systems together. Without a configuration it gets the kubelet's own.
func node(v eviction.Version, nodeFS, imageFS eviction.FS) eviction.Node {
	return eviction.Node{
		Version: v,
		Facts: eviction.Facts{
			Host:   eviction.Host{DevZFS: true, SearchPath: "/sbin", ZFSProgram: "/sbin/zfs"},
			NodeFS: nodeFS, ImageFS: imageFS,
		},
		Config: &eviction.Config{Hard: eviction.DefaultHard(), ConfigFile: true},
	}
}

// one is a node with everything on one file system.
func one(v eviction.Version, fs eviction.FS) eviction.Node { return node(v, fs, fs) }

// Case is a node with a name.
type Case struct {
	Name string
	Node eviction.Node
}

// filesystems are those of which the kubelet's behaviour is known one by one.
func filesystems(v eviction.Version) []Case {
	inodes := func(n uint64) eviction.Node {
		return one(v, other("/dev/sda1", kubeletDir, 100*gib, 50*gib, n, n))
	}
	return []Case{
		{"zfs with room", one(v, dataset("tank/k8s", kubeletDir, space{own: 20 * gib, available: 80 * gib}))},
		{"zfs nearly full", one(v, dataset("tank/k8s", kubeletDir, space{own: 99 * gib, available: 1 * gib}))},
		{"zfs with children and snapshots", one(v, dataset("tank/k8s", kubeletDir, space{20 * gib, 400 * gib, 500 * gib, 80 * gib}))},
		{"two datasets", node(v,
			dataset("tank/kubelet", kubeletDir, space{own: 5 * gib, available: 80 * gib}),
			dataset("tank/containerd", containerdDir, space{own: 15 * gib, available: 80 * gib}))},
		{"two datasets nearly full", node(v,
			dataset("tank/kubelet", kubeletDir, space{own: 5 * gib, available: 1 * gib}),
			dataset("tank/containerd", containerdDir, space{own: 94 * gib, available: 1 * gib}))},
		{"containerd elsewhere", node(v,
			dataset("tank/kubelet", kubeletDir, space{own: 5 * gib, available: 80 * gib}),
			other("/dev/sda1", containerdDir, 100*gib, 50*gib, 1<<20, 1<<19))},
		{"ext4", one(v, other("/dev/sda1", kubeletDir, 100*gib, 50*gib, 1<<20, 1<<19))},
		{"no inodes at all", inodes(0)},
		{"endless inodes", inodes(math.MaxUint64)},
	}
}

// configurations are those that a node can have: name, and what it makes of a node.
func configurations() []struct {
	name  string
	apply func(eviction.Node) *eviction.Config
} {
	written := func(hard, reclaim map[string]string) *eviction.Config {
		return &eviction.Config{Hard: settings(hard), MinimumReclaim: settings(reclaim)}
	}
	k3s := func() *eviction.Config {
		return written(map[string]string{"nodefs.available": "5%", "imagefs.available": "5%"},
			map[string]string{"nodefs.available": "10%", "imagefs.available": "10%"})
	}
	return []struct {
		name  string
		apply func(eviction.Node) *eviction.Config
	}{
		{"upstream", func(n eviction.Node) *eviction.Config { return n.Config }},
		{"k3s", func(eviction.Node) *eviction.Config { return k3s() }},
		{"planned", func(n eviction.Node) *eviction.Config {
			// On a disk that is nearly full there is no plan; that of the disk with room is in force.
			n.Facts.NodeFS, n.Facts.ImageFS = emptied(n.Facts.NodeFS), emptied(n.Facts.ImageFS)
			plan, err := eviction.NewPlan(n)
			if err != nil {
				panic(err)
			}
			return plan.Over(k3s(), "90-tarn-zfs.conf")
		}},
		{"absolute inodes", func(eviction.Node) *eviction.Config {
			return written(map[string]string{"nodefs.inodesFree": "1k", "imagefs.inodesFree": "1k"}, nil)
		}},
		{"soft", func(eviction.Node) *eviction.Config {
			c := written(map[string]string{"nodefs.available": "1Gi"}, nil)
			c.Soft = settings(map[string]string{"nodefs.available": "10%", "imagefs.inodesFree": "5%"})
			c.SoftGracePeriod = settings(map[string]string{"nodefs.available": "1m", "imagefs.inodesFree": "1m"})
			return c
		}},
		{"containerfs", func(eviction.Node) *eviction.Config {
			return written(map[string]string{"containerfs.available": "2Gi", "containerfs.inodesFree": "5%", "imagefs.available": "3Gi"}, nil)
		}},
		{"invalid", func(eviction.Node) *eviction.Config {
			return written(map[string]string{"nodefs.inodesFree": "0"}, nil)
		}},
		{"misspelt", func(eviction.Node) *eviction.Config {
			return written(map[string]string{"nodefs.inodefree": "5%"}, nil)
		}},
	}
}

// emptied is a file system with its own content removed.
func emptied(f eviction.FS) eviction.FS {
	if f.Dataset == nil {
		f.Statfs.Available = f.Statfs.Capacity
		return f
	}
	d := *f.Dataset
	return dataset(d.Name, f.Path, space{0, d.UsedBySnapshots, d.UsedByChildren, d.Available + d.UsedByDataset})
}

func settings(values map[string]string) map[string]eviction.Setting {
	m := map[string]eviction.Setting{}
	for k, v := range values {
		m[k] = eviction.Setting{Value: v, Origin: eviction.OriginFile}
	}
	return m
}

// Table is every file system with every configuration.
func Table(v eviction.Version) []Case {
	var list []Case
	for _, fs := range filesystems(v) {
		for _, c := range configurations() {
			n := fs.Node
			n.Config = c.apply(n)
			list = append(list, Case{fs.Name + ", " + c.name, n})
		}
	}
	return list
}

// strange are values that are easily read in another way than the kubelet does.
var strange = []string{
	"0%", "100%", "100.0%", "0.0%", "101%", "-1%", "5%%", "%", "1e1%", "+5%", " 5%", "5 %", "nan%", "inf%",
	"0", "-1Gi", "+1Gi", "x", "", "1.5.5", "1.", ".5Gi", ".", "1e3", "1E3", "12e-1", "1e", "1e+2", "1n", "5u", "999m",
	"3T", "2P", "1E", "8E", "9000E", "8Ei", "1 Gi", "1K", "1GB", "1gi", "0x10", "1_000", "007", "0.000Gi", "1e999",
}

// random is a node that nobody thought of.
func random(r *rand.Rand, v eviction.Version) eviction.Node {
	size := func() uint64 { return r.Uint64N(1 << (20 + r.Uint64N(24))) }
	fs := func(name, path string) eviction.FS {
		switch r.IntN(6) {
		case 0:
			inodes := size()
			return other("/dev/"+name, path, size(), size(), inodes, r.Uint64N(inodes+1))
		case 1:
			return other("/dev/"+name, path, size(), size(), 0, 0)
		}
		return dataset("tank/"+name, path, space{size(), size(), size(), size()})
	}
	n := one(v, fs("a", kubeletDir))
	if r.IntN(2) == 0 {
		n = node(v, fs("a", kubeletDir), fs("b", containerdDir))
	}
	n.Facts.Host.DevZFS = r.IntN(8) > 0
	units := []string{"", "k", "Ki", "M", "Mi", "G", "Gi", "e6", "m", "u", "T", "Ti", "E3"}
	value := func() string {
		switch r.IntN(8) {
		case 0:
			return strange[r.IntN(len(strange))]
		case 1, 2, 3:
			return strconv.FormatFloat(r.Float64()*60, 'f', r.IntN(4), 64) + "%"
		case 4:
			return strconv.FormatFloat(r.Float64()*9, 'f', 1+r.IntN(3), 64) + units[r.IntN(len(units))]
		}
		return strconv.Itoa(1+r.IntN(2000)) + units[r.IntN(len(units))]
	}
	signals := []string{"nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree"}
	pick := func(chance int) map[string]eviction.Setting {
		values := map[string]string{}
		for _, s := range signals {
			if r.IntN(chance) == 0 {
				values[s] = value()
			}
		}
		return settings(values)
	}
	n.Config = &eviction.Config{Hard: pick(2), Soft: pick(6), MinimumReclaim: pick(6), SoftGracePeriod: map[string]eviction.Setting{}}
	for signal := range n.Config.Soft {
		n.Config.SoftGracePeriod[signal] = eviction.Setting{Value: []string{"1m", "90s", "0s"}[r.IntN(3)]}
	}
	return n
}
