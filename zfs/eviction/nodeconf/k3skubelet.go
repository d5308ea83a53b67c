package nodeconf

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// What k3s sets for the kubelet by itself: as flags before 1.32, in a drop-in from then on.
const (
	k3sHardFlag    = "imagefs.available<5%,nodefs.available<5%"
	k3sReclaimFlag = "imagefs.available=10%,nodefs.available=10%"
)

// readK3sKubelet reads the kubelet in k3s.
func (l *layers) readK3sKubelet(n *Node) {
	extra := n.K3s.KubeletArgs()
	if !k3sHasConfigDir(n.Version) {
		own := []Arg{{"eviction-hard", Given{k3sHardFlag, PlaceDefault, ""}}, {"eviction-minimum-reclaim", Given{k3sReclaimFlag, PlaceDefault, ""}}}
		n.Args = mergeK3sArgs(own, extra)
		if g, ok := lastArg(n.Args, "config"); ok {
			n.ConfigFile = g.Value
		}
		if g, ok := lastArg(n.Args, "config-dir"); ok {
			n.ConfigDir = g.Value
		}
		l.readKubelet(n)
		return
	}
	n.ConfigDir = n.K3s.KubeletConfDir()
	// k3s copies the files of these two into its own directory and does not hand the arguments on.
	config, hasConfig := lastArg(extra, "config")
	dir, hasDir := lastArg(extra, "config-dir")
	for _, a := range extra {
		if name := flagName(a.Name); name != "config" && name != "config-dir" {
			n.Args = append(n.Args, a)
		}
	}
	n.Args = mergeK3sArgs(nil, n.Args)
	files := l.k3sDropIns(n.ConfigDir, hasConfig, hasDir)
	if hasConfig {
		files = append(files, dropIn{path.Join(n.ConfigDir, k3sCLIConfigFile), config.Value, eviction.OriginDropIn})
	}
	if hasDir {
		for _, d := range l.walkDropIns(dir.Value) {
			rel := strings.TrimPrefix(d.file, path.Clean(dir.Value)+"/")
			d.file = path.Join(n.ConfigDir, k3sCLIConfigDir, rel)
			files = append(files, d)
		}
	}
	slices.SortStableFunc(files, func(a, b dropIn) int { return slices.Compare(strings.Split(a.file, "/"), strings.Split(b.file, "/")) })
	l.addDropIns(files)
}

// k3sDropIns lists the drop-ins in k3s' directory without the copies of files that k3s is told to copy anew, and sees
// that k3s' own defaults are in force also where k3s has not yet written them, or they can not be read.
func (l *layers) k3sDropIns(dir string, copiesFile, copiesDir bool) (files []dropIn) {
	defaults := path.Join(dir, k3sDefaultsFile)
	if _, err := fs.ReadFile(l.Root, inside(defaults)); err != nil {
		l.merged = mergePatch(l.merged, k3sDefaults(defaults))
	}
	if _, err := fs.Stat(l.Root, inside(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil // k3s makes it at its first start
	}
	for _, d := range l.walkDropIns(dir) {
		name := strings.TrimPrefix(d.file, path.Clean(dir)+"/")
		first, _, _ := strings.Cut(name, "/")
		switch first {
		case k3sDefaultsFile:
			d.origin = eviction.OriginDefault
		case k3sCLIConfigFile, k3sCLIConfigDir:
			if first == k3sCLIConfigFile && copiesFile || first == k3sCLIConfigDir && copiesDir {
				continue
			}
			l.note(Note{Kind: Leftover, File: d.file, Text: "k3s copied it from a kubelet-arg that is no longer there; it stays in force", Fix: "remove it if it is not meant to count, and restart k3s"})
		}
		files = append(files, d)
	}
	return files
}

// k3sDefaults is what k3s writes into its defaults file that matters here.
func k3sDefaults(file string) *object {
	from := eviction.Setting{Origin: eviction.OriginDefault, Source: file + ", as k3s writes it when it starts"}
	mapping := func(value string) *object {
		o := &object{fields: map[string]*object{}, from: from}
		for _, signal := range []string{"imagefs.available", "nodefs.available"} {
			o.set(signal, &object{text: value, isText: true, from: from})
		}
		return o
	}
	o := &object{fields: map[string]*object{}, from: from}
	o.set(keyHard, mapping("5%"))
	o.set(keyReclaim, mapping("10%"))
	return o
}
