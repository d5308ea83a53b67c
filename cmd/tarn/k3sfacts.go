package main

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// k3sFacts is what there is of k3s on a machine.
type k3sFacts struct {
	config    *nodeconf.K3s
	notes     []nodeconf.Note
	installed bool
	version   eviction.Version // zero: not known

	// What its data directory holds. unseen says why that is not known.
	embeddedEtcd, sqlite bool
	unseen               error
}

// readK3sFacts reads them. What may not be read is among the notes.
func readK3sFacts(ctx context.Context, m machine, rootless bool) k3sFacts {
	var f k3sFacts
	f.config, f.notes, f.installed = nodeconf.ReadK3s(m.Machine, rootless)
	if m.Run != nil {
		for _, program := range []string{"k3s", "/usr/local/bin/k3s"} {
			out, err := m.Run(ctx, program, "--version")
			if err != nil {
				continue
			}
			if v, err := eviction.ParseVersion(out); err == nil {
				f.version, f.installed = v, true
				break
			}
		}
	}
	db := f.dbDir()
	info, err := fs.Stat(m.Root, rootPath(path.Join(db, "etcd/member/wal")))
	f.embeddedEtcd = err == nil && info.IsDir()
	f.see(err)
	info, err = fs.Stat(m.Root, rootPath(path.Join(db, "state.db")))
	f.sqlite = err == nil && info.Mode().IsRegular()
	f.see(err)
	return f
}

func (f *k3sFacts) see(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.unseen = withoutPath(err)
	}
}

// hidden tells whether a part of the configuration may not be read, so that what is not found may be there.
func (f *k3sFacts) hidden() bool {
	return slices.ContainsFunc(f.notes, func(n nodeconf.Note) bool { return n.Kind == nodeconf.Unreadable })
}

func (f *k3sFacts) dbDir() string { return path.Join(f.config.DataDir().Value, "server/db") }

func (f *k3sFacts) versionText() string {
	if !f.version.Known() {
		return ""
	}
	return f.version.String()
}

// isAgent tells whether only an agent runs here: the datastore is the servers' matter.
func (f *k3sFacts) isAgent() bool {
	if f.config.Command != "" {
		return f.config.Command == "agent"
	}
	_, joins := f.config.Value("server")
	return joins
}

// unit is the name of the service of k3s.
func (f *k3sFacts) unit() string {
	if f.config.Unit != nil {
		return f.config.Unit.Name
	}
	return "k3s.service"
}

// imageDir is where containerd has the images, as the kubelet looks for it.
func (f *k3sFacts) imageDir() string {
	name := "overlayfs" // k3s' default
	if g, ok := f.config.Value("snapshotter"); ok {
		name = g.Value
	}
	return path.Join(f.config.DataDir().Value, "agent/containerd/io.containerd.snapshotter.v1."+name)
}

// kubeletDir is the kubelet's own directory.
func (f *k3sFacts) kubeletDir() string {
	dir := nodeconf.KubeletRoot
	for _, a := range f.config.KubeletArgs() {
		if a.Name == "root-dir" {
			dir = a.Value
		}
	}
	return dir
}

// takesSocket tells whether this k3s takes unix:// for its datastore: since kine 0.14.13, of March 2026.
// Only versions of which that is certain count.
func (f *k3sFacts) takesSocket() bool {
	v := f.version
	switch {
	case v.Major != 1:
		return v.Major > 1
	case v.Minor >= 36:
		return true
	case v.Minor == 35:
		return v.Patch >= 5
	case v.Minor == 34:
		return v.Patch >= 9
	}
	return false
}

// rootPath is an absolute path as one in the root's fs.FS.
func rootPath(file string) string {
	if name := strings.TrimPrefix(path.Clean("/"+file), "/"); name != "" {
		return name
	}
	return "."
}
