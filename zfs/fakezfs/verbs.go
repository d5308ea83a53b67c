package fakezfs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func (c *command) list() error {
	names, err := c.targets(c.args, c.value("t", ""))
	if err != nil {
		return err
	}
	columns := strings.Split(c.value("o", "name,used,available,referenced,mountpoint"), ",")
	for _, name := range names {
		row := make([]string, len(columns))
		for i, column := range columns {
			row[i], _ = c.prop(name, strings.TrimSpace(column))
		}
		fmt.Fprintln(c.out, strings.Join(row, "\t"))
	}
	return nil
}

func (c *command) get() error {
	if len(c.args) < 2 {
		return sayf("missing property=value argument")
	}
	names, err := c.targets(c.args[1:], c.value("t", ""))
	if err != nil {
		return err
	}
	columns := strings.Split(c.value("o", "name,property,value,source"), ",")
	sources := strings.Split(c.value("s", ""), ",")
	for _, name := range names {
		props := strings.Split(c.args[0], ",")
		if d := c.Datasets[name]; c.args[0] == "all" && d != nil {
			props = slices.Sorted(maps.Keys(d.Props))
		}
		for _, prop := range props {
			value, source := c.prop(name, prop)
			if kind, _, _ := strings.Cut(source, " "); c.has("s") && !slices.Contains(sources, kind) {
				continue
			}
			row := make([]string, len(columns))
			for i, column := range columns {
				row[i] = map[string]string{"name": name, "property": prop, "value": value, "source": source}[column]
			}
			fmt.Fprintln(c.out, strings.Join(row, "\t"))
		}
	}
	return nil
}

func (c *command) set() error {
	n := len(c.args)
	if n < 2 {
		return sayf("missing property=value argument")
	}
	name := c.args[n-1]
	props, err := splitProps(c.args[:n-1])
	if err != nil {
		return err
	}
	switch {
	case c.Snapshots[name] != nil:
		snap := c.Snapshots[name]
		if snap.Props == nil {
			snap.Props = map[string]string{}
		}
		maps.Copy(snap.Props, props)
	case c.Datasets[name] != nil:
		maps.Copy(c.Datasets[name].Props, props)
	default:
		return sayf("cannot open '%s': dataset does not exist", name)
	}
	return nil
}

func (c *command) inherit() error {
	if len(c.args) != 2 {
		return sayf("missing dataset argument")
	}
	name := c.args[1]
	if snap := c.Snapshots[name]; snap != nil {
		delete(snap.Props, c.args[0])
		return nil
	}
	if d := c.Datasets[name]; d != nil {
		delete(d.Props, c.args[0])
		return nil
	}
	return sayf("cannot open '%s': dataset does not exist", name)
}

func (c *command) create() error {
	if len(c.args) != 1 {
		return sayf("missing filesystem argument")
	}
	name := c.args[0]
	props, err := splitProps(c.flags["o"])
	if err != nil {
		return err
	}
	if c.Datasets[name] != nil {
		return sayf("cannot create '%s': dataset already exists", name)
	}
	parent := name[:max(0, strings.LastIndexByte(name, '/'))]
	if c.Datasets[parent] == nil {
		if !c.has("p") || parent == "" {
			return sayf("cannot create '%s': parent does not exist", name)
		}
		above := &command{state: c.state, out: c.out, flags: map[string][]string{"p": {""}}, args: []string{parent}}
		if err := above.create(); err != nil {
			return err
		}
	}
	c.TXG++
	c.Datasets[name] = &dataset{GUID: c.newGUID(), TXG: c.TXG, Props: props}
	return c.mountNow(name)
}

func (c *command) mountNow(name string) error {
	point := c.mountpoint(name)
	if !filepath.IsAbs(point) || c.Datasets[name].Props["canmount"] == "noauto" || c.Datasets[name].Props["canmount"] == "off" {
		return nil
	}
	c.Datasets[name].Mounted = true
	return os.MkdirAll(point, 0o755)
}

func (c *command) mount() error {
	if len(c.args) != 1 || c.Datasets[c.args[0]] == nil {
		return sayf("cannot open '%s': dataset does not exist", strings.Join(c.args, " "))
	}
	d := c.Datasets[c.args[0]]
	if d.Mounted {
		return sayf("cannot mount '%s': filesystem already mounted", c.args[0])
	}
	d.Mounted = true
	return os.MkdirAll(c.mountpoint(c.args[0]), 0o755)
}

func (c *command) unmount() error {
	if len(c.args) != 1 || c.Datasets[c.args[0]] == nil || !c.Datasets[c.args[0]].Mounted {
		return sayf("cannot unmount '%s': not currently mounted", strings.Join(c.args, " "))
	}
	c.Datasets[c.args[0]].Mounted = false
	return nil
}

func (c *command) snapshot() error {
	props, err := splitProps(c.flags["o"])
	if err != nil {
		return err
	}
	if len(c.args) == 0 {
		return sayf("missing snapshot argument")
	}
	for _, full := range c.args {
		ds := datasetOf(full)
		switch {
		case c.Datasets[ds] == nil:
			return sayf("cannot open '%s': dataset does not exist\nusage:", ds)
		case c.Snapshots[full] != nil:
			return sayf("cannot create snapshot '%s': dataset already exists\nno snapshots were created", full)
		}
	}
	c.TXG += 3 // one group for all
	for _, full := range c.args {
		snap := &snapshot{GUID: c.newGUID(), TXG: c.TXG, Creation: c.now(), Props: maps.Clone(props)}
		if err := c.addSnapshot(full, snap, c.mountpoint(datasetOf(full))); err != nil {
			return err
		}
	}
	return nil
}

// addSnapshot adds a snapshot with the files of a directory.
func (s *state) addSnapshot(full string, snap *snapshot, from string) error {
	if s.Snapshots == nil {
		s.Snapshots = map[string]*snapshot{}
	}
	s.Snapshots[full] = snap
	content := s.content(snap.GUID)
	if err := copyFiles(content, from); err != nil {
		return err
	}
	ds, name, _ := strings.Cut(full, "@")
	if point := s.mountpoint(ds); filepath.IsAbs(point) {
		dir := filepath.Join(point, ".zfs", "snapshot")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.Symlink(content, filepath.Join(dir, name))
	}
	return nil
}

// copyFiles copies files and directories.
func copyFiles(to, from string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.Name() == ".zfs":
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
}

func (c *command) destroy() error {
	if len(c.args) != 1 {
		return sayf("missing dataset argument")
	}
	name := c.args[0]
	if b := c.Bookmarks[name]; b != nil {
		delete(c.Bookmarks, name)
		return nil
	}
	if strings.Contains(name, "#") {
		return sayf("bookmark '%s' does not exist.", name)
	}
	if strings.Contains(name, "@") {
		snap := c.Snapshots[name]
		switch {
		case snap == nil:
			return sayf("could not find any snapshots to destroy; check snapshot names.")
		case len(c.clones(name)) > 0:
			return sayf("cannot destroy '%s': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\n%s",
				name, strings.Join(c.clones(name), "\n"))
		case len(snap.Holds) > 0:
			return sayf("cannot destroy snapshot %s: dataset is busy", name)
		}
		return c.dropSnapshot(name)
	}
	if c.Datasets[name] == nil {
		return sayf("cannot open '%s': dataset does not exist", name)
	}
	return c.destroyDataset(name)
}

func (c *command) destroyDataset(name string) error {
	var below []string
	for full := range c.Snapshots {
		if datasetOf(full) == name {
			below = append(below, full)
		}
	}
	if len(below) > 0 && !c.has("r") {
		return sayf("cannot destroy '%s': filesystem has children\nuse '-r' to destroy the following datasets:\n%s", name, strings.Join(below, "\n"))
	}
	for _, full := range below {
		if err := c.dropSnapshot(full); err != nil {
			return err
		}
	}
	point := c.mountpoint(name)
	delete(c.Datasets, name)
	if filepath.IsAbs(point) && strings.HasPrefix(point, c.dir) {
		return os.RemoveAll(point)
	}
	return nil
}

func (c *command) dropSnapshot(full string) error {
	content := c.content(c.Snapshots[full].GUID)
	delete(c.Snapshots, full)
	ds, name, _ := strings.Cut(full, "@")
	if point := c.mountpoint(ds); filepath.IsAbs(point) {
		if err := os.RemoveAll(filepath.Join(point, ".zfs", "snapshot", name)); err != nil {
			return err
		}
	}
	for _, other := range c.Snapshots {
		if c.content(other.GUID) == content {
			return nil // a received copy has it, too
		}
	}
	return os.RemoveAll(content)
}

func (c *command) hold() error {
	if len(c.args) < 2 {
		return sayf("missing tag argument")
	}
	tag := c.args[0]
	for _, full := range c.args[1:] {
		snap := c.Snapshots[full]
		if snap == nil {
			return sayf("cannot hold snapshot '%s': dataset does not exist", full)
		}
		if slices.ContainsFunc(snap.Holds, func(h hold) bool { return h.Tag == tag }) {
			return sayf("cannot hold snapshot '%s': tag already exists on this dataset", full)
		}
		snap.Holds = append(snap.Holds, hold{tag, c.now()})
	}
	return nil
}

func (c *command) release() error {
	if len(c.args) < 2 {
		return sayf("missing tag argument")
	}
	tag := c.args[0]
	for _, full := range c.args[1:] {
		snap := c.Snapshots[full]
		if snap == nil {
			return sayf("cannot release hold from snapshot '%s': dataset does not exist", full)
		}
		i := slices.IndexFunc(snap.Holds, func(h hold) bool { return h.Tag == tag })
		if i < 0 {
			return sayf("cannot release hold from snapshot '%s': no such tag on this dataset", full)
		}
		snap.Holds = slices.Delete(snap.Holds, i, i+1)
	}
	return nil
}

func (c *command) holds() error {
	for _, full := range c.args {
		snap := c.Snapshots[full]
		if snap == nil {
			return sayf("cannot open '%s': dataset does not exist", full)
		}
		for _, h := range snap.Holds {
			fmt.Fprintf(c.out, "%s\t%s\t%d\n", full, h.Tag, h.Time)
		}
	}
	return nil
}

func (c *command) bookmark() error {
	if len(c.args) != 2 {
		return sayf("missing bookmark argument")
	}
	from, to := c.args[0], c.args[1]
	if strings.HasPrefix(to, "#") {
		to = datasetOf(from) + to
	}
	if c.Bookmarks == nil {
		c.Bookmarks = map[string]*bookmark{}
	}
	if c.Bookmarks[to] != nil {
		return sayf("cannot create bookmark '%s': bookmark exists", to)
	}
	if b := c.Bookmarks[from]; b != nil {
		copied := *b
		c.Bookmarks[to] = &copied
		return nil
	}
	snap := c.Snapshots[from]
	if snap == nil {
		return sayf("cannot open '%s': dataset does not exist", from)
	}
	c.Bookmarks[to] = &bookmark{GUID: snap.GUID, TXG: snap.TXG, Creation: snap.Creation}
	return nil
}

func (c *command) clone() error {
	if len(c.args) != 2 {
		return sayf("missing source dataset argument")
	}
	from, name := c.args[0], c.args[1]
	props, err := splitProps(c.flags["o"])
	if err != nil {
		return err
	}
	switch {
	case c.Snapshots[from] == nil:
		return sayf("cannot open '%s': dataset does not exist", from)
	case c.Datasets[name] != nil:
		return sayf("cannot create '%s': dataset already exists", name)
	}
	c.TXG++
	c.Datasets[name] = &dataset{GUID: c.newGUID(), TXG: c.TXG, Props: props, Origin: from}
	if err := c.mountNow(name); err != nil {
		return err
	}
	return copyFiles(c.mountpoint(name), c.content(c.Snapshots[from].GUID))
}

func (c *command) poolList() error {
	for _, pool := range c.args {
		if pool != "tank" && c.Datasets[pool] == nil {
			return sayf("cannot open '%s': no such pool", pool)
		}
	}
	columns := strings.Split(c.value("o", "name,health"), ",")
	facts := map[string]string{"name": "tank", "health": "ONLINE", "size": "10000000000", "free": "9000000000",
		"allocated": "1000000000", "capacity": "10", "fragmentation": "0%", "readonly": "off", "freeing": "0", "leaked": "0", "dedupratio": "1.00x"}
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = facts[column]
	}
	fmt.Fprintln(c.out, strings.Join(row, "\t"))
	return nil
}
