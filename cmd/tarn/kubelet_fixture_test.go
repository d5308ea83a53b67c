package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// goldenPage compares what a command prints with a file in testdata.
func goldenPage(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("TARN_WRITE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it prints something else than %s (TARN_WRITE_GOLDEN=1 writes it):\n%s", file, lineDiff(string(want), got))
	}
}

const kubeletHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

const k3sConfDir = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/"

// k3sMachine are the files of a k3s as its installer leaves it.
var k3sMachine = map[string]string{
	"/etc/systemd/system/k3s.service": "[Unit]\nAfter=network-online.target\nRequiresMountsFor=/var/lib/rancher/k3s/agent/containerd/io.containerd.snapshotter.v1.overlayfs /var/lib/kubelet\n" +
		"[Service]\nEnvironmentFile=-/etc/systemd/system/k3s.service.env\nExecStart=/usr/local/bin/k3s \\\n    server \\\n",
	"/etc/systemd/system/k3s.service.env": "",
	k3sConfDir + "00-k3s-defaults.conf": kubeletHeader + "evictionHard:\n  imagefs.available: 5%\n  nodefs.available: 5%\n" +
		"evictionMinimumReclaim:\n  imagefs.available: 10%\n  nodefs.available: 10%\n",
}

// kubeadmMachine are the files of a kubelet as kubeadm leaves it.
var kubeadmMachine = map[string]string{
	"/usr/lib/systemd/system/kubelet.service": "[Unit]\nRequiresMountsFor=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs /var/lib/kubelet\n[Service]\nExecStart=/usr/bin/kubelet\n",
	"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
	"/var/lib/kubelet/config.yaml": kubeletHeader + "cgroupDriver: systemd\n",
}

// kubeletRig is a machine in a directory with a kubelet, whose file systems are made up.
type kubeletRig struct {
	root    string
	facts   *eviction.Facts // nil: they can not be looked at
	systemd string
	version string // that k3s and the kubelet print
	started string // when the unit was started, in seconds
}

func newKubeletRig(t *testing.T, files ...map[string]string) *kubeletRig {
	t.Helper()
	r := &kubeletRig{root: t.TempDir(), systemd: "255", version: "v1.36.2+k3s1"}
	for _, some := range files {
		for name, text := range some {
			r.write(t, name, text)
		}
	}
	return r
}

func (r *kubeletRig) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *kubeletRig) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// options are those of a command on the machine.
func (r *kubeletRig) options() kubeletOptions {
	o := defaultKubeletOptions()
	o.machine.Machine = nodeconf.MachineAt(r.root)
	o.machine.Run = func(_ context.Context, name string, args ...string) (string, error) {
		switch {
		case name == "systemctl" && args[0] == "--version":
			return "systemd " + r.systemd + " (" + r.systemd + ".4-1)\n", nil
		case name == "systemctl" && r.started != "":
			return "ExecMainStartTimestamp=@" + r.started + "\n", nil
		case args[0] == "--version" && r.version != "":
			return filepath.Base(name) + " version " + r.version + "\n", nil
		}
		return "", errors.New("there is no such program")
	}
	o.gather = func(context.Context, eviction.Options) (*eviction.Facts, error) {
		if r.facts == nil {
			return nil, errors.New("look at /var/lib/kubelet: the pool tank is suspended; see zpool status")
		}
		facts := *r.facts
		return &facts, nil
	}
	return o
}

func (r *kubeletRig) check(t *testing.T, change func(*kubeletOptions)) (code int, page string) {
	t.Helper()
	o := r.options()
	if change != nil {
		change(&o)
	}
	var out strings.Builder
	return exitCode(runKubeletCheck(t.Context(), o, &out)), out.String()
}

func (r *kubeletRig) config(t *testing.T, change func(*kubeletConfigOptions)) (code int, page string) {
	t.Helper()
	o := kubeletConfigOptions{kubeletOptions: r.options(), root: r.root, supplement: true}
	if change != nil {
		change(&o)
	}
	var out strings.Builder
	err := runKubeletConfig(t.Context(), o, &out)
	if err != nil {
		out.WriteString("tarn: " + err.Error() + "\n")
	}
	return exitCode(err), out.String()
}

const gib = 1 << 30

// onDataset is a file system on a dataset. own is what it holds itself, below what is in snapshots and datasets below it.
func onDataset(name, path string, own, below, available uint64) eviction.FS {
	return eviction.FS{
		Path: path, Found: path, Device: "0:" + name, Type: "zfs", Source: name, Point: path,
		Statfs: eviction.Statfs{Magic: eviction.MagicZFS, Capacity: own + available, Available: available, Inodes: available/512 + 1000, InodesFree: available / 512},
		Dataset: &eviction.Dataset{
			Space: zfs.Space{Name: name, Used: own + below, Available: available, Referenced: own, UsedByDataset: own,
				UsedByChildren: below, Mountpoint: path, Mounted: "yes", CanMount: "on"},
			Ancestors:  []zfs.Space{{Name: zfs.PoolOf(name), Used: own + below + gib, Available: available}},
			PoolHealth: "ONLINE",
		},
	}
}

func onExt4(path string, capacity, available uint64) eviction.FS {
	return eviction.FS{Path: path, Found: path, Device: "8:1", Type: "ext4", Source: "/dev/sda1", Point: "/",
		Statfs: eviction.Statfs{Magic: 0xef53, Capacity: capacity, Available: available, Inodes: 1 << 20, InodesFree: 1 << 19}}
}

const k3sImages = "/var/lib/rancher/k3s/agent/containerd/io.containerd.snapshotter.v1.overlayfs"

// zfsFacts are two datasets of one pool. below is what the images' dataset has in datasets below it.
func zfsFacts(below, available uint64) *eviction.Facts {
	f := &eviction.Facts{
		Host:    eviction.Host{DevZFS: true, SearchPath: "/usr/sbin:/usr/bin", ZFSProgram: "/usr/sbin/zfs", Root: true},
		NodeFS:  onDataset("tank/kubelet", "/var/lib/kubelet", 5*gib, 0, available),
		ImageFS: onDataset("tank/k3s", k3sImages, 20*gib, below, available),
	}
	for _, fs := range []*eviction.FS{&f.NodeFS, &f.ImageFS} {
		fs.Dataset.Ancestors[0].Used = 30*gib + below
	}
	return f
}

func plainFacts() *eviction.Facts {
	return &eviction.Facts{NodeFS: onExt4("/var/lib/kubelet", 100*gib, 40*gib), ImageFS: onExt4("/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs", 100*gib, 40*gib)}
}
