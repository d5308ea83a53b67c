package eviction

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Options are what is known of a node before it is looked at. What is "" is found out.
type Options struct {
	// KubeletRoot is the kubelet's --root-dir.
	KubeletRoot string
	// ContainerdRoot is the root of containerd's configuration.
	ContainerdRoot string
	// Snapshotter is its name: overlayfs, zfs, native.
	Snapshotter string
	// DataDir is the data directory of k3s. With it, the node is one of k3s.
	DataDir string
	// SearchPath is the PATH of the kubelet's process, as in its unit or in
	// /proc/PID/environ. "" is the one that systemd gives.
	SearchPath string
}

// systemdPath is what units get that say nothing of a PATH.
const systemdPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	k3sDataDir     = "/var/lib/rancher/k3s"
	k3sConfigDir   = "/etc/rancher/k3s"
	kubeletRoot    = "/var/lib/kubelet"
	containerdRoot = "/var/lib/containerd"
	containerdFile = "/etc/containerd/config.toml"
	snapshotterDir = "io.containerd.snapshotter.v1."
	defaultShotter = "overlayfs"
)

// Find finds where the kubelet and containerd keep their things on this machine. It
// guesses what o leaves open: by the directories of k3s if there are any, and else by
// the files of containerd.
func Find(o Options) Layout {
	home, _ := os.UserHomeDir() // "" is no home, and then nothing is rootless
	return find(o, "/", home)
}

// find is Find for the files below root. home is within root.
func find(o Options, root, home string) Layout {
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	l := Layout{Kind: LayoutKubelet, KubeletRoot: kubeletRoot, ContainerdRoot: containerdRoot, DataDir: o.DataDir}
	rootless := ""
	if home != "" {
		rootless = filepath.Join(home, ".rancher/k3s")
	}
	settings := containerdFile
	if l.DataDir == "" && o.KubeletRoot == "" && o.ContainerdRoot == "" {
		switch {
		case exists(k3sDataDir), exists(k3sConfigDir):
			l.DataDir = k3sDataDir
		case rootless != "" && exists(rootless):
			l.DataDir = rootless
		}
	}
	if l.DataDir != "" {
		l.Kind = LayoutK3s
		l.ContainerdRoot = filepath.Join(l.DataDir, "agent/containerd")
		settings = filepath.Join(l.DataDir, "agent/etc/containerd/config.toml")
		if l.DataDir == rootless {
			l.Kind = LayoutK3sRootless
			l.KubeletRoot = filepath.Join(l.DataDir, "agent/kubelet")
		}
	}
	fromFile, shotter := readContainerd(filepath.Join(root, settings))
	if fromFile != "" {
		l.ContainerdRoot = fromFile
	}
	if o.KubeletRoot != "" && o.ContainerdRoot != "" {
		l.Kind = LayoutGiven
	}
	l.KubeletRoot = orText(o.KubeletRoot, l.KubeletRoot)
	l.ContainerdRoot = orText(o.ContainerdRoot, l.ContainerdRoot)
	shotter = orText(o.Snapshotter, orText(shotter, snapshotterOf(filepath.Join(root, l.ContainerdRoot))))
	l.Snapshotter = filepath.Join(l.ContainerdRoot, snapshotterDir+shotter)
	return l
}

var (
	tomlRoot        = regexp.MustCompile(`(?m)^root\s*=\s*["']([^"']+)["']`)
	tomlSnapshotter = regexp.MustCompile(`(?m)^\s*snapshotter\s*=\s*["']([a-z0-9-]+)["']`)
)

// readContainerd reads the root and the snapshotter in a configuration of containerd,
// "" for what it does not say.
func readContainerd(file string) (root, shotter string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "" // as without the file: containerd's defaults
	}
	if m := tomlRoot.FindSubmatch(text); m != nil {
		root = string(m[1])
	}
	if m := tomlSnapshotter.FindSubmatch(text); m != nil {
		shotter = string(m[1])
	}
	return root, shotter
}

// snapshotterOf is the snapshotter that has a directory, if there is one only or one
// is the default: containerd makes directories for some that it does not use.
func snapshotterOf(root string) string {
	dirs, _ := filepath.Glob(filepath.Join(root, snapshotterDir+"*")) // the pattern is a good one
	var names []string
	for _, dir := range dirs {
		names = append(names, filepath.Base(dir)[len(snapshotterDir):])
	}
	if len(names) == 1 && !slices.Contains(names, defaultShotter) {
		return names[0]
	}
	return defaultShotter
}
