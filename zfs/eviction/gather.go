package eviction

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs"
)

// machine is what gather reads a node from.
type machine interface {
	// resolve finds a path, or the nearest directory above it that exists, which is
	// missing then, and the number of the device there, "major:minor".
	resolve(path string) (found, device string, missing bool, err error)
	statfs(path string) (Statfs, error)
	mounts() ([]zfs.Mount, error)
	host(searchPath string) Host
	// space is that of the datasets named, or of all.
	space(ctx context.Context, names ...string) ([]zfs.Space, error)
	poolHealth(ctx context.Context, pool string) (string, error)
	snapshots(ctx context.Context, dataset string, below bool) ([]string, error)
	// kubeletZFS asks the program zfs that the kubelet finds for a dataset, if it is another one than
	// the methods above use.
	kubeletZFS(ctx context.Context, h Host, dataset string) error
}

// Gather reads what there is on this machine. It changes nothing. What zfs does not
// answer is noted in the facts and is no error; an error is that a path could not be
// looked at, or that ctx ended: with a suspended pool the kernel may never answer.
func Gather(ctx context.Context, o Options) (*Facts, error) {
	return gatherInTime(ctx, Find(o), o.SearchPath)
}

// GatherPaths is Gather for two paths that are known: the kubelet's root directory and
// containerd's directory of snapshots.
func GatherPaths(ctx context.Context, kubeletRoot, snapshots, searchPath string) (*Facts, error) {
	return gatherInTime(ctx, Layout{Kind: LayoutGiven, KubeletRoot: kubeletRoot, Snapshotter: snapshots}, searchPath)
}

func gatherInTime(ctx context.Context, l Layout, searchPath string) (*Facts, error) {
	type result struct {
		facts *Facts
		err   error
	}
	done := make(chan result, 1)
	go func() {
		facts, err := gather(ctx, thisMachine{}, l, searchPath)
		done <- result{facts, err}
	}()
	select {
	case r := <-done:
		return r.facts, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("look at the file systems: %w; see zpool status: a suspended pool answers nothing", ctx.Err())
	}
}

func gather(ctx context.Context, m machine, l Layout, searchPath string) (*Facts, error) {
	f := &Facts{Host: m.host(orText(searchPath, systemdPath)), Layout: l}
	mounts, err := m.mounts()
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	for _, part := range []struct {
		to    *FS
		path  string
		below bool
	}{
		{&f.NodeFS, l.KubeletRoot, false},
		{&f.ImageFS, l.Snapshotter, filepath.Base(l.Snapshotter) == snapshotterDir+"zfs"},
	} {
		if err := part.to.read(ctx, m, mounts, part.path); err != nil {
			return nil, fmt.Errorf("look at %s: %w", part.path, err)
		}
		switch {
		case !part.to.OnZFS():
		case !f.Host.DevZFS:
			// Each zfs would wait 10 seconds for it.
			part.to.ZFSError = "there is no /dev/zfs"
		default:
			if err := part.to.ask(ctx, m, f.Host, part.below); err != nil {
				return nil, err
			}
		}
	}
	if f.Host.DevZFS {
		hidden(ctx, m, f)
	}
	return f, ctx.Err()
}

// read fills what the kernel knows.
func (f *FS) read(ctx context.Context, m machine, mounts []zfs.Mount, path string) (err error) {
	f.Path = path
	if f.Found, f.Device, f.Missing, err = m.resolve(path); err != nil {
		return err
	}
	if f.Statfs, err = m.statfs(f.Found); err != nil {
		return err
	}
	// As the kubelet finds it: the first mount with the number of the device. That can
	// be a bind mount of a part, which is why the point is looked for apart.
	at := slices.IndexFunc(mounts, func(m zfs.Mount) bool { return m.Device == f.Device })
	if at < 0 {
		// btrfs gives files other numbers than its mounts have.
		mount, ok := zfs.MountOf(mounts, f.Found)
		if !ok {
			return fmt.Errorf("no mount has the device %s", f.Device)
		}
		f.Type, f.Source, f.Point = mount.FSType, mount.Source, mount.Point
		return nil
	}
	f.Type, f.Source, f.Point = mounts[at].FSType, mounts[at].Source, mounts[at].Point
	for _, other := range mounts {
		if other.Device == f.Device && within(other.Point, f.Found) && (!within(f.Point, f.Found) || len(other.Point) > len(f.Point)) {
			f.Point = other.Point
		}
	}
	return ctx.Err()
}

// ask fills what zfs knows, or why it knows nothing.
func (f *FS) ask(ctx context.Context, m machine, h Host, below bool) error {
	names := []string{f.Source}
	for name := f.Source; strings.Contains(name, "/"); {
		name = name[:strings.LastIndexByte(name, '/')]
		names = append(names, name)
	}
	spaces, err := m.space(ctx, names...)
	if errors.Is(err, zfs.ErrNotFound) {
		spaces, err = m.space(ctx, f.Source) // in a container, what is above can be out of sight
	}
	if err != nil {
		f.ZFSError = err.Error()
		return ctx.Err()
	}
	if h.ZFSProgram != "" {
		if err := m.kubeletZFS(ctx, h, f.Source); err != nil {
			f.KubeletZFSError = err.Error()
		}
	}
	d := &Dataset{Space: spaces[0], Ancestors: spaces[1:]}
	// The health and the snapshots are good to have; without them there is less to say.
	if health, err := m.poolHealth(ctx, d.Pool()); err == nil {
		d.PoolHealth = health
	}
	if snaps, err := m.snapshots(ctx, d.Name, below); err == nil {
		for _, s := range snaps {
			switch of, name, _ := strings.Cut(s, "@"); {
			case of == d.Name:
				d.Snapshots++
			case name != "snapshot": // containerd calls its own so
				d.SnapshotsBelow++
			}
		}
	}
	f.Dataset = d
	return ctx.Err()
}

// hidden notes datasets that should be mounted above one of the paths and are not.
func hidden(ctx context.Context, m machine, f *Facts) {
	all, err := m.space(ctx)
	if err != nil {
		return // what does not answer here has been noted with its dataset
	}
	for _, fs := range []*FS{&f.NodeFS, &f.ImageFS} {
		for _, s := range all {
			// Boot environments have the mountpoint / and are not mounted, all but one.
			if s.Mounted == "no" && s.CanMount != "off" && filepath.IsAbs(s.Mountpoint) && s.Mountpoint != "/" &&
				within(s.Mountpoint, fs.Path) && within(fs.Point, s.Mountpoint) && fs.Point != s.Mountpoint {
				fs.Hidden = append(fs.Hidden, s.Name)
			}
		}
	}
}
