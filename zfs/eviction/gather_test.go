package eviction

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs"
)

// pretended is a machine out of tables.
type pretended struct {
	devices map[string]string // by path
	missing map[string]bool
	spaces  []zfs.Space
	refuse  error  // what zfs says instead
	unseen  string // a dataset that it does not show
	noDev   bool
	broken  string // a dataset for which the kubelet's zfs fails
	snaps   []string
	asked   []string
	dir     string
}

func (p *pretended) resolve(path string) (found, device string, missing bool, err error) {
	if p.missing[path] {
		path, missing = filepath.Dir(path), true
	}
	device, ok := p.devices[path]
	if !ok {
		return "", "", false, errors.New("no such directory")
	}
	return path, device, missing, nil
}

func (p *pretended) statfs(string) (Statfs, error) {
	return Statfs{Magic: MagicZFS, Capacity: 100, Available: 50, Inodes: 10, InodesFree: 5}, nil
}

func (p *pretended) mounts() ([]zfs.Mount, error) {
	return zfs.ReadMounts(filepath.Join(p.dir, "mountinfo"))
}

func (p *pretended) host(searchPath string) Host {
	return Host{DevZFS: !p.noDev, SearchPath: searchPath, ZFSProgram: "/sbin/zfs"}
}

func (p *pretended) space(_ context.Context, names ...string) ([]zfs.Space, error) {
	p.asked = append(p.asked, strings.Join(names, " "))
	if p.refuse != nil || len(names) == 0 {
		return p.spaces, p.refuse
	}
	var list []zfs.Space
	for _, name := range names {
		if name == p.unseen {
			return nil, zfs.ErrNotFound
		}
		list = append(list, zfs.Space{Name: name, Used: 7})
	}
	return list, nil
}

func (p *pretended) kubeletZFS(_ context.Context, h Host, dataset string) error {
	if dataset == p.broken {
		return errors.New(h.ZFSProgram + " does not work")
	}
	return nil
}

func (p *pretended) poolHealth(_ context.Context, pool string) (string, error) {
	return "ONLINE of " + pool, nil
}

func (p *pretended) snapshots(_ context.Context, dataset string, below bool) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(p.snaps), func(s string) bool {
		return !strings.HasPrefix(s, dataset+"@") && (!below || !strings.HasPrefix(s, dataset+"/"))
	}), nil
}

const pretendedTable = `28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 28 0:35 / /var/lib/kubelet rw,noatime shared:20 - zfs tank/k8s/my\040kubelet rw,xattr,posixacl
41 28 0:36 /part /srv/bind rw,noatime shared:21 - zfs tank/k8s/containerd rw
42 28 0:36 / /var/lib/containerd rw,noatime shared:21 - zfs tank/k8s/containerd rw
43 28 0:37 / /data rw - btrfs /dev/sdb1 rw
`

const zfsShots = "/var/lib/containerd/io.containerd.snapshotter.v1.zfs"

func newPretended(t *testing.T) (*pretended, Layout) {
	p := &pretended{
		dir:     tree(t, map[string]string{"mountinfo": pretendedTable}),
		devices: map[string]string{nodePath: "0:35", "/var/lib/containerd": "0:36", "/": "8:1", "/data/x": "0:99"},
		missing: map[string]bool{zfsShots: true},
		snaps: []string{
			"tank/k8s/my kubelet@daily", "tank/k8s/containerd@a", "tank/k8s/containerd/1@snapshot", "tank/k8s/containerd/1@hourly", "tank/k8s/containerd/2@hourly",
		},
	}
	return p, Layout{Kind: LayoutGiven, KubeletRoot: nodePath, Snapshotter: zfsShots}
}

func TestGather(t *testing.T) {
	p, l := newPretended(t)
	f, err := gather(t.Context(), p, l, "")
	if err != nil {
		t.Fatal(err)
	}
	node, image := f.NodeFS, f.ImageFS
	if node.Source != "tank/k8s/my kubelet" || node.Point != nodePath || node.Missing || node.Dataset.PoolHealth != "ONLINE of tank" {
		t.Errorf("nodefs %+v", node)
	}
	// The first mount with that device is a bind mount of a part, from elsewhere.
	if image.Source != "tank/k8s/containerd" || image.Point != "/var/lib/containerd" || !image.Missing || image.Found != "/var/lib/containerd" {
		t.Errorf("imagefs %+v", image)
	}
	if node.Dataset.Snapshots != 1 || node.Dataset.SnapshotsBelow != 0 || image.Dataset.Snapshots != 1 || image.Dataset.SnapshotsBelow != 2 {
		t.Errorf("snapshots: %+v and %+v", node.Dataset, image.Dataset)
	}
	if root := image.Dataset.Root(); root.Name != "tank" || image.Dataset.Name != "tank/k8s/containerd" || len(image.Dataset.Ancestors) != 2 {
		t.Errorf("ancestors %+v", image.Dataset.Ancestors)
	}
	if f.Host.SearchPath != systemdPath {
		t.Errorf("PATH %q", f.Host.SearchPath)
	}
}

func TestGatherWhereZFSRefuses(t *testing.T) {
	p, l := newPretended(t)
	p.refuse = errors.New("permission denied")
	f, err := gather(t.Context(), p, l, "/bin")
	if err != nil || f.NodeFS.Dataset != nil || f.NodeFS.ZFSError != "permission denied" || f.NodeFS.Source == "" || f.Host.SearchPath != "/bin" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestGatherWhereTheKubeletsZFSFails(t *testing.T) {
	p, l := newPretended(t)
	p.broken = "tank/k8s/containerd"
	f, err := gather(t.Context(), p, l, "")
	if err != nil || f.NodeFS.KubeletZFSError != "" || f.ImageFS.KubeletZFSError != "/sbin/zfs does not work" || f.ImageFS.Dataset == nil {
		t.Errorf("%+v, %v", f, err)
	}
	f.NodeFS.KubeletZFSError, f.Host.Root = f.ImageFS.KubeletZFSError, true
	if r := Examine(Node{Version: v137, Facts: *f, Config: &Config{}}); !strings.Contains(r.StartError, "/sbin/zfs does not work") {
		t.Errorf("it starts: %+v", r)
	}
}

// Without /dev/zfs each zfs waits 10 seconds for it, and the kubelet asks the kernel.
func TestGatherWithoutDevZFS(t *testing.T) {
	p, l := newPretended(t)
	p.noDev = true
	f, err := gather(t.Context(), p, l, "")
	if err != nil || len(p.asked) > 0 || f.NodeFS.Dataset != nil || f.ImageFS.ZFSError == "" {
		t.Errorf("zfs was asked for %q: %+v, %v", p.asked, f, err)
	}
	r := Examine(Node{Version: v137, Facts: *f, Config: &Config{}})
	if r.StartError != "" || r.NodeFS.Capacity == nil || *r.NodeFS.Capacity != 100 || r.NodeFS.Inodes == nil {
		t.Errorf("%+v", r)
	}
}

func TestGatherInAContainer(t *testing.T) {
	p, l := newPretended(t)
	p.unseen = "tank"
	f, err := gather(t.Context(), p, l, "")
	if err != nil || f.NodeFS.Dataset == nil || f.NodeFS.Dataset.Root().Name != "tank/k8s/my kubelet" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestGatherHiddenDatasets(t *testing.T) {
	p, l := newPretended(t)
	p.spaces = []zfs.Space{
		{Name: "tank/hidden", Mountpoint: "/var/lib/containerd/io.containerd.snapshotter.v1.zfs", Mounted: "no", CanMount: "on"},
		{Name: "tank/late", Mountpoint: "/var/lib/kubelet", Mounted: "no", CanMount: "noauto"}, // another is mounted there
		{Name: "tank/off", Mountpoint: zfsShots, Mounted: "no", CanMount: "off"},
		{Name: "tank/mounted", Mountpoint: zfsShots, Mounted: "yes", CanMount: "on"},
		{Name: "tank/ROOT/old", Mountpoint: "/", Mounted: "no", CanMount: "noauto"},
		{Name: "tank/legacy", Mountpoint: "legacy", Mounted: "no", CanMount: "on"},
		{Name: "tank/other", Mountpoint: "/var/lib/containerd-old", Mounted: "no", CanMount: "on"},
		{Name: "tank/deep", Mountpoint: zfsShots + "/deep", Mounted: "no", CanMount: "on"},
	}
	f, err := gather(t.Context(), p, l, "")
	if err != nil || f.NodeFS.Hidden != nil || !slices.Equal(f.ImageFS.Hidden, []string{"tank/hidden"}) {
		t.Errorf("%q and %q, %v", f.NodeFS.Hidden, f.ImageFS.Hidden, err)
	}
}

func TestGatherElsewhere(t *testing.T) {
	p, _ := newPretended(t)
	// Files of btrfs have other device numbers than its mounts.
	f, err := gather(t.Context(), p, Layout{KubeletRoot: "/", Snapshotter: "/data/x"}, "")
	if err != nil || f.NodeFS.Source != "/dev/sda1" || f.ImageFS.Source != "/dev/sdb1" || f.ImageFS.Type != "btrfs" {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := gather(t.Context(), p, Layout{KubeletRoot: "/nowhere", Snapshotter: "/"}, ""); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Error(err)
	}
}

func TestGatherOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	f, err := GatherPaths(t.Context(), dir, filepath.Join(dir, "not/yet"), "")
	if err != nil {
		t.Fatal(err)
	}
	if f.NodeFS.Source != f.ImageFS.Source || f.NodeFS.Missing || !f.ImageFS.Missing || f.NodeFS.Statfs.Capacity == 0 || !within(f.NodeFS.Point, f.NodeFS.Found) {
		t.Errorf("%+v", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := GatherPaths(ctx, dir, dir, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestReadHost(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Host
	}{
		{"nothing", nil, Host{}},
		{"a machine with ZFS", map[string]string{"dev/zfs": "", "usr/sbin/zfs": "#!", "proc/self/uid_map": "         0          0 4294967295\n"},
			Host{DevZFS: true, ZFSProgram: "/usr/sbin/zfs"}},
		{"a directory of that name", map[string]string{"sbin/zfs": "/", "usr/sbin/zfs": "#!"}, Host{ZFSProgram: "/usr/sbin/zfs"}},
		{"an unprivileged container", map[string]string{"dev/zfs": "", "run/systemd/container": "lxc\n", "proc/self/uid_map": "0 100000 65536\n"},
			Host{DevZFS: true, Container: "lxc", Unprivileged: true}},
		{"a container without systemd", map[string]string{"proc/1/environ": "TERM=linux\x00container=lxc\x00"}, Host{Container: "lxc"}},
	} {
		c.want.SearchPath, c.want.Root = "/sbin:/usr/sbin", os.Geteuid() == 0
		if got := readHost(tree(t, c.files), "/sbin:/usr/sbin"); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
