package eviction

import (
	"os"
	"path/filepath"
	"testing"
)

// tree makes files, and directories where the content is "/", below a temporary root.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if text == "/" {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if text != "/" {
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestFind(t *testing.T) {
	const (
		home     = "/srv/ada"
		k3sTOML  = "var/lib/rancher/k3s/agent/etc/containerd/config.toml"
		k3sShots = "/var/lib/rancher/k3s/agent/containerd/io.containerd.snapshotter.v1."
	)
	for _, c := range []struct {
		name    string
		files   map[string]string
		options Options
		want    Layout
	}{
		{"nothing at all", nil, Options{}, Layout{
			LayoutKubelet, "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs", "",
		}},
		{"kubeadm", map[string]string{"etc/containerd/config.toml": "version = 3\nroot = '/srv/containerd'\n[plugins]\n  snapshotter = \"zfs\"\n"}, Options{}, Layout{
			LayoutKubelet, "/var/lib/kubelet", "/srv/containerd", "/srv/containerd/io.containerd.snapshotter.v1.zfs", "",
		}},
		{"kubeadm with another root directory", nil, Options{KubeletRoot: "/srv/kubelet"}, Layout{
			LayoutKubelet, "/srv/kubelet", "/var/lib/containerd", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs", "",
		}},
		{"k3s", map[string]string{"var/lib/rancher/k3s": "/"}, Options{}, Layout{
			LayoutK3s, "/var/lib/kubelet", "/var/lib/rancher/k3s/agent/containerd", k3sShots + "overlayfs", "/var/lib/rancher/k3s",
		}},
		{"k3s, configured and not started", map[string]string{"etc/rancher/k3s/config.yaml": ""}, Options{}, Layout{
			LayoutK3s, "/var/lib/kubelet", "/var/lib/rancher/k3s/agent/containerd", k3sShots + "overlayfs", "/var/lib/rancher/k3s",
		}},
		{"k3s with zfs", map[string]string{k3sTOML: "[plugins.'io.containerd.cri.v1.images']\n  snapshotter = \"zfs\"\n", k3sShots[1:] + "overlayfs": "/"}, Options{}, Layout{
			LayoutK3s, "/var/lib/kubelet", "/var/lib/rancher/k3s/agent/containerd", k3sShots + "zfs", "/var/lib/rancher/k3s",
		}},
		{"k3s by its only directory", map[string]string{k3sShots[1:] + "native": "/"}, Options{}, Layout{
			LayoutK3s, "/var/lib/kubelet", "/var/lib/rancher/k3s/agent/containerd", k3sShots + "native", "/var/lib/rancher/k3s",
		}},
		{"k3s with several directories", map[string]string{k3sShots[1:] + "native": "/", k3sShots[1:] + "zfs": "/"}, Options{}, Layout{
			LayoutK3s, "/var/lib/kubelet", "/var/lib/rancher/k3s/agent/containerd", k3sShots + "overlayfs", "/var/lib/rancher/k3s",
		}},
		{"k3s elsewhere", nil, Options{DataDir: "/data/k3s", Snapshotter: "zfs"}, Layout{
			LayoutK3s, "/var/lib/kubelet", "/data/k3s/agent/containerd", "/data/k3s/agent/containerd/io.containerd.snapshotter.v1.zfs", "/data/k3s",
		}},
		{"rootless k3s", map[string]string{"srv/ada/.rancher/k3s": "/"}, Options{}, Layout{
			LayoutK3sRootless, home + "/.rancher/k3s/agent/kubelet", home + "/.rancher/k3s/agent/containerd",
			home + "/.rancher/k3s/agent/containerd/io.containerd.snapshotter.v1.overlayfs", home + "/.rancher/k3s",
		}},
		{"both given", map[string]string{"var/lib/rancher/k3s": "/"}, Options{KubeletRoot: "/a", ContainerdRoot: "/b"}, Layout{
			LayoutGiven, "/a", "/b", "/b/io.containerd.snapshotter.v1.overlayfs", "",
		}},
	} {
		if got := find(c.options, tree(t, c.files), home); got != c.want {
			t.Errorf("%s:\n%+v\nwant\n%+v", c.name, got, c.want)
		}
	}
}
