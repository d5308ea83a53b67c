package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// kubeletOptions are the settings that the commands about the kubelet share: which kubelet, and what is
// told by hand of a machine that is not recognised.
type kubeletOptions struct {
	k3s, kubelet          bool
	rootDir, imageDir     string // "" to find them
	configFile, configDir string
	version               string
	kubeconfig, node      string
	timeout               time.Duration
	output                outputFormat
	guess                 bool // take what can be read of the configuration for all there is

	machine machine
	// gather reads the facts of the file systems; a test has its own.
	gather func(ctx context.Context, o eviction.Options) (*eviction.Facts, error)
}

func defaultKubeletOptions() kubeletOptions {
	// A suspended pool never answers, a cluster under load may take some seconds.
	return kubeletOptions{timeout: 20 * time.Second, output: outputText, machine: thisMachine(), gather: eviction.Gather}
}

func (o *kubeletOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	boolFlag(fs, &o.k3s, "k3s", "the kubelet in k3s, if more than one is installed")
	boolFlag(fs, &o.kubelet, "kubelet", "a kubelet of its own, as kubeadm sets it up, if more than one is installed")
	const dir, file = "an absolute path of a directory", "an absolute path of a file"
	fs.Var(stringValue(&o.rootDir, "dir", dir), "root-dir", "the kubelet's directory (default: found, else "+nodeconf.KubeletRoot+")")
	fs.Var(stringValue(&o.imageDir, "dir", dir), "image-dir", "containerd's directory with the images (default: found)")
	fs.Var(stringValue(&o.configFile, "file", file), "config", "the file that the kubelet gets as --config; then no unit is read")
	fs.Var(stringValue(&o.configDir, "dir", dir), "config-dir", "the directory that the kubelet gets as --config-dir; then no unit is read")
	fs.Var(stringValue(&o.version, "version", "a version such as v1.36.2 or v1.36.2+k3s1"), "kubelet-version", "version of the kubelet (default: asked)")
	fs.Var(stringValue(&o.kubeconfig, "file", "the path of a kubeconfig"), "kubeconfig",
		"ask the running kubelet too, through this cluster; on k3s /etc/rancher/k3s/k3s.yaml (default: not asked)")
	fs.Var(stringValue(&o.node, "name", "the name of a node"), "node", "the node's name in the cluster (default: the host name)")
	fs.Var(durationValue(&o.timeout, 100*time.Millisecond), "timeout", "how long programs and servers may take to answer")
	addOutputFlag(fs, &o.output)
}

func (o *kubeletOptions) validate() error {
	if o.k3s && o.kubelet {
		return errors.New("--k3s and --kubelet: choose one")
	}
	for flag, path := range map[string]string{"root-dir": o.rootDir, "image-dir": o.imageDir, "config": o.configFile, "config-dir": o.configDir} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("--%s can not be %q; valid: an absolute path", flag, path)
		}
	}
	if o.node != "" && o.kubeconfig == "" {
		return errors.New("--node is for asking a cluster, which needs --kubeconfig")
	}
	_, err := o.givenVersion()
	return err
}

func (o *kubeletOptions) givenVersion() (v eviction.Version, err error) {
	if o.version == "" {
		return v, nil
	}
	if v, err = eviction.ParseVersion(o.version); err != nil {
		return v, fmt.Errorf("--kubelet-version can not be %q; valid: a version such as v1.36.2 or v1.36.2+k3s1", o.version)
	}
	return v, nil
}

// kubeletLook is what is known of the kubelet of this machine.
type kubeletLook struct {
	node *nodeconf.Node
	live *liveKubelet // nil if it was not asked, or does not answer
	// facts and report are nil if the file systems could not be looked at.
	facts  *eviction.Facts
	report *eviction.Report
	// judged is the configuration that report is about: that of the files, or that of the running kubelet where
	// they can not be read. nil if neither is known.
	judged *eviction.Config
	// unseen are the things that could not be looked at, and what it needs.
	unseen []nodeconf.Note
}

// readNode reads how the kubelet is configured on a machine.
func (o *kubeletOptions) readNode(ctx context.Context, m nodeconf.Machine) (*nodeconf.Node, error) {
	given, err := o.givenVersion()
	if err != nil {
		return nil, err
	}
	if err := o.checkPaths(m); err != nil {
		return nil, err
	}
	read := nodeconf.Options{ConfigFile: o.configFile, ConfigDir: o.configDir, Version: given}
	switch {
	case o.k3s:
		read.Layout = eviction.LayoutK3s
	case o.kubelet:
		read.Layout = eviction.LayoutKubelet
	}
	return nodeconf.Read(ctx, m, read), nil
}

// checkPaths tells which path was given that is a directory and should be a file, or the reverse. What is not
// there is told with what is missing in it.
func (o *kubeletOptions) checkPaths(m nodeconf.Machine) error {
	for _, p := range []struct {
		flag, path string
		dir        bool
	}{{"root-dir", o.rootDir, true}, {"image-dir", o.imageDir, true}, {"config", o.configFile, false}, {"config-dir", o.configDir, true}} {
		if p.path == "" {
			continue
		}
		info, err := fs.Stat(m.Root, rootPath(p.path))
		switch {
		case err != nil || info.IsDir() == p.dir:
		case p.dir:
			return fmt.Errorf("--%s can not be %q: it is no directory; valid: an absolute path of a directory", p.flag, p.path)
		default:
			return fmt.Errorf("--%s can not be %q: it is a directory; valid: an absolute path of a file", p.flag, p.path)
		}
	}
	return nil
}

// look reads all that there is and works out what it means.
func (o *kubeletOptions) look(ctx context.Context) (*kubeletLook, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	node, err := o.readNode(ctx, o.machine.Machine)
	if err != nil {
		return nil, err
	}
	l := &kubeletLook{node: node}
	if o.kubeconfig != "" {
		if err := o.askLive(ctx, l); err != nil {
			l.unseen = append(l.unseen, nodeconf.Note{Kind: nodeconf.Unreadable, Text: "the running kubelet: " + err.Error()})
		}
	}
	if node.Layout == "" && o.configFile == "" && o.configDir == "" && o.rootDir == "" && l.live == nil {
		return l, nil
	}
	facts, err := o.gather(ctx, o.places(node))
	if err != nil {
		l.unseen = append(l.unseen, nodeconf.Note{Kind: nodeconf.Unreadable, Text: err.Error()})
		return l, nil
	}
	l.facts = facts
	n := l.evictionNode(node)
	if n.Config == nil || l.partial() && !o.guess {
		// What files set that can not be read would make all that is said of thresholds wrong.
		n.Config = nil
		if l.live != nil {
			n.Config = l.live.config
		}
	}
	l.judged = n.Config
	l.report = eviction.Examine(n)
	return l, nil
}

// places are where the file systems of a node are looked for.
func (o *kubeletOptions) places(n *nodeconf.Node) eviction.Options {
	p := eviction.Options{KubeletRoot: o.rootDir}
	if p.KubeletRoot == "" && n.RootDir.Place != nodeconf.PlaceDefault {
		p.KubeletRoot = n.RootDir.Value
	}
	if n.K3s != nil {
		p.DataDir = n.K3s.DataDir().Value
		if g, ok := n.K3s.Value("snapshotter"); ok {
			p.Snapshotter = g.Value
		}
	} else if p.KubeletRoot == "" {
		p.KubeletRoot = nodeconf.KubeletRoot // or else traces of k3s would count
	}
	if n.Unit != nil {
		p.SearchPath = n.Unit.Environment["PATH"].Value
	}
	if o.imageDir != "" {
		p.ContainerdRoot = o.imageDir
		if name, ok := strings.CutPrefix(filepath.Base(o.imageDir), "io.containerd.snapshotter.v1."); ok {
			p.ContainerdRoot, p.Snapshotter = filepath.Dir(o.imageDir), name
		}
	}
	return p
}

// askLive asks the running kubelet. Its version is the one that counts, unless one was told by hand.
func (o *kubeletOptions) askLive(ctx context.Context, l *kubeletLook) error {
	c, err := newKubeClient(o.kubeconfig)
	if err != nil {
		return err
	}
	name := o.node
	if name == "" && l.node.K3s != nil {
		if g, ok := l.node.K3s.Value("node-name"); ok {
			name = g.Value
		}
	}
	l.live, err = askKubelet(ctx, c, name)
	if l.live == nil || o.version != "" {
		return err
	}
	if v, parseErr := eviction.ParseVersion(l.live.version); parseErr == nil {
		l.node.Version, l.node.VersionFrom = v, "the node "+l.live.node
	}
	return err
}

// onZFS tells whether one of the file systems is ZFS. The facts must be known.
func (l *kubeletLook) onZFS() bool { return l.facts.NodeFS.OnZFS() || l.facts.ImageFS.OnZFS() }

// partial tells whether some of the configuration can not be read.
func (l *kubeletLook) partial() bool { return len(l.unread()) > 0 }

// unread are files of the configuration that can not be read.
func (l *kubeletLook) unread() (files []string) {
	for _, n := range l.node.Notes {
		if n.Kind == nodeconf.Unreadable && n.File != "" {
			files = append(files, n.File)
		}
	}
	return files
}

// config is how the kubelet is configured, nil if that is not known.
func (l *kubeletLook) config(node *nodeconf.Node) *eviction.Config {
	if node.Layout == "" && node.ConfigFile == "" && node.ConfigDir == "" {
		return nil
	}
	return &node.Config
}

// evictionNode is what is known, in the form in which it is examined.
func (l *kubeletLook) evictionNode(node *nodeconf.Node) eviction.Node {
	n := eviction.Node{Version: node.Version, Facts: *l.facts, Config: l.config(node)}
	if l.live != nil {
		n.Live = &l.live.Live
	}
	return n
}
