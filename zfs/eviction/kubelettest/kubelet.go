package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/cadvisor/lib/fs"
	_ "github.com/google/cadvisor/lib/fs/btrfs/install" // those that the kubelet has
	_ "github.com/google/cadvisor/lib/fs/nfs/install"
	_ "github.com/google/cadvisor/lib/fs/overlay/install"
	_ "github.com/google/cadvisor/lib/fs/tmpfs/install"
	_ "github.com/google/cadvisor/lib/fs/vfs/install"
	_ "github.com/google/cadvisor/lib/fs/zfs/install"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/kubelettest/harness"
)

// kubelet is what the kubelet's code makes of this machine.
type kubelet struct {
	NodeFS           seen             `json:"nodeFS"`
	ImageFS          seen             `json:"imageFS"`
	DedicatedImageFS bool             `json:"dedicatedImageFS"`
	StartError       string           `json:"startError,omitempty"`
	Outcome          *harness.Outcome `json:"eviction,omitempty"`
	ImageGC          *harness.ImageGC `json:"imageGC,omitempty"`
}

// seen is one file system as cAdvisor sees it.
type seen struct {
	Path   string `json:"path"`
	Device string `json:"device"`
	eviction.Stats
	Error string `json:"error,omitempty"`
}

// asKubelet looks at the machine with the kubelet's code.
func asKubelet(ctx context.Context, nodeDir, imageDir string, config *eviction.Config) (*kubelet, error) {
	disks, err := fs.NewFsInfo(fs.Context{})
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	all, err := disks.GetGlobalFsInfo()
	if err != nil {
		return nil, fmt.Errorf("ask the file systems: %w", err)
	}
	k := &kubelet{NodeFS: find(disks, all, nodeDir), ImageFS: find(disks, all, imageDir)}
	k.DedicatedImageFS = k.NodeFS.Device != k.ImageFS.Device
	if k.NodeFS.Error != "" || k.ImageFS.Error != "" {
		return k, nil
	}
	k.Outcome, err = harness.RunConfig(ctx, config, harness.FS(k.NodeFS.Stats), harness.FS(k.ImageFS.Stats), k.DedicatedImageFS)
	if err != nil {
		k.StartError = err.Error()
		return k, nil
	}
	gc := eviction.Examine(eviction.Node{Config: config}).ImageGC // only for the percentages
	k.ImageGC, err = harness.CollectImages(ctx, harness.FS(k.ImageFS.Stats), gc.HighPercent, gc.LowPercent)
	return k, err
}

// find does what GetDirFsInfo of cAdvisor's manager does, without its cache.
func find(disks fs.FsInfo, all []fs.Fs, dir string) seen {
	s := seen{Path: dir}
	device, err := disks.GetDirFsDevice(dir)
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.Device = device.Device
	at := slices.IndexFunc(all, func(f fs.Fs) bool { return f.Device == device.Device })
	if at < 0 {
		s.Error = fmt.Sprintf("cannot find filesystem info for device %q", device.Device)
		return s
	}
	s.Stats = eviction.Stats{
		Capacity: &all[at].Capacity, Available: &all[at].Available,
		Inodes: all[at].Inodes, InodesFree: all[at].InodesFree,
	}
	return s
}

// differences are what a report of this machine foretells and the kubelet's code does not do.
func (k *kubelet) differences(n eviction.Node, r *eviction.Report) []string {
	list := []string{}
	differ := func(what string, want, got any) {
		list = append(list, fmt.Sprintf("%s: foretold is %v, and it was %v", what, want, got))
	}
	for _, d := range []struct {
		name   string
		fs     eviction.FS
		view   eviction.View
		actual seen
	}{{"nodefs", n.Facts.NodeFS, r.NodeFS, k.NodeFS}, {"imagefs", n.Facts.ImageFS, r.ImageFS, k.ImageFS}} {
		if d.fs.Source != d.actual.Device {
			differ(d.name+" device", d.fs.Source, d.actual.Device)
		}
		if (d.view.Problem != "") != (d.actual.Error != "") {
			differ(d.name+" problem", d.view.Problem, d.actual.Error)
		}
		if want, got := numbers(d.view.Stats), numbers(d.actual.Stats); want != got {
			differ(d.name+" capacity, available, inodes, free inodes", want, got)
		}
	}
	if r.DedicatedImageFS != k.DedicatedImageFS {
		differ("two devices", r.DedicatedImageFS, k.DedicatedImageFS)
	}
	if k.NodeFS.Error != "" || k.StartError != "" {
		if r.StartError == "" {
			differ("starting", "that it starts", k.NodeFS.Error+k.StartError)
		}
		return list
	}
	if (k.ImageFS.Error != "") != (r.EvictionError != "") {
		differ("evicting", r.EvictionError, k.ImageFS.Error)
	}
	if k.Outcome == nil {
		return list
	}
	list = append(list, harness.Differences(n, r, k.Outcome, nil)...)
	if gc := k.ImageGC; gc != nil && (gc.Runs != r.ImageGC.Runs || gc.Runs && (gc.UsedPercent != r.ImageGC.UsedPercent || gc.ToFree != int64(r.ImageGC.ToFree))) {
		differ("collection of images", fmt.Sprintf("%+v", r.ImageGC), fmt.Sprintf("%+v", *gc))
	}
	return list
}

func numbers(s eviction.Stats) string {
	text := ""
	for _, n := range []*uint64{s.Capacity, s.Available, s.Inodes, s.InodesFree} {
		if n == nil {
			text += " nil"
		} else {
			text += fmt.Sprintf(" %d", *n)
		}
	}
	return text[1:]
}
