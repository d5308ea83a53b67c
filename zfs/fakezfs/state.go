package fakezfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// state is all that is remembered between two commands.
type state struct {
	dir         string
	TXG, GUIDs  uint64
	ClockOffset int64
	Datasets    map[string]*dataset
	Snapshots   map[string]*snapshot // by full name
	Bookmarks   map[string]*bookmark // by full name
	Failures    []failure
	Log         []string
}

type dataset struct {
	GUID, TXG uint64
	Props     map[string]string // own ones
	Mounted   bool
	Origin    string // full name of a snapshot
	Partial   *partial
}

type snapshot struct {
	GUID, TXG uint64
	Creation  int64
	Props     map[string]string
	Received  bool // the properties came with a stream
	Holds     []hold
}

type hold struct {
	Tag  string
	Time int64
}

type bookmark struct {
	GUID, TXG uint64
	Creation  int64
}

type failure struct {
	Command, Stderr string
	Times           int
}

func (s *state) newGUID() uint64 {
	s.GUIDs++
	return 0x1000000000 + s.GUIDs*0x10001
}

func (s *state) now() int64 { return time.Now().Unix() + s.ClockOffset }

// content is where the files of a snapshot are.
func (s *state) content(guid uint64) string {
	return filepath.Join(s.dir, "content", strconv.FormatUint(guid, 16))
}

func datasetOf(name string) string {
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, "#")
	return name
}

func isUser(prop string) bool { return strings.Contains(prop, ":") }

func (s *state) mountpoint(name string) string {
	v, _ := s.datasetProp(name, "mountpoint")
	return v
}

// datasetProp is a property of a dataset, own or inherited, and its source.
func (s *state) datasetProp(name, prop string) (value, source string) {
	for at := name; ; {
		if d := s.Datasets[at]; d != nil {
			if v, ok := d.Props[prop]; ok {
				if at == name {
					return v, "local"
				}
				if prop == "mountpoint" && filepath.IsAbs(v) {
					v += strings.TrimPrefix(name, at)
				}
				return v, "inherited from " + at
			}
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 || !inherits(prop) {
			return "-", "-"
		}
		at = at[:i]
	}
}

// inherits tells whether a property goes down to the datasets below.
func inherits(prop string) bool {
	switch prop {
	case "quota", "refquota", "reservation", "refreservation", "canmount":
		return false
	}
	return true
}

// prop is a property of anything, as zfs get shows it.
func (s *state) prop(name, prop string) (value, source string) {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	ds := datasetOf(name)
	if snap := s.Snapshots[name]; snap != nil {
		switch prop {
		case "name":
			return name, "-"
		case "type":
			return "snapshot", "-"
		case "creation":
			return strconv.FormatInt(snap.Creation, 10), "-"
		case "createtxg":
			return number(snap.TXG), "-"
		case "guid":
			return number(snap.GUID), "-"
		case "userrefs":
			return strconv.Itoa(len(snap.Holds)), "-"
		case "used":
			return "0", "-"
		case "referenced", "written", "logicalreferenced":
			return number(sizeOf(s.content(snap.GUID))), "-"
		case "clones":
			return strings.Join(s.clones(name), ","), "-"
		}
		if v, ok := snap.Props[prop]; ok {
			if snap.Received {
				return v, "received"
			}
			return v, "local"
		}
		if isUser(prop) {
			v, source := s.datasetProp(ds, prop)
			if source == "local" {
				source = "inherited from " + ds
			}
			return v, source
		}
		return "-", "-"
	}
	if b := s.Bookmarks[name]; b != nil {
		switch prop {
		case "name":
			return name, "-"
		case "type":
			return "bookmark", "-"
		case "creation":
			return strconv.FormatInt(b.Creation, 10), "-"
		case "createtxg":
			return number(b.TXG), "-"
		case "guid":
			return number(b.GUID), "-"
		}
		return "-", "-"
	}
	d := s.Datasets[name]
	switch prop {
	case "name":
		return name, "-"
	case "type":
		return "filesystem", "-"
	case "guid":
		return number(d.GUID), "-"
	case "createtxg":
		return number(d.TXG), "-"
	case "creation":
		return "1700000000", "-"
	case "mounted":
		if d.Mounted {
			return "yes", "-"
		}
		return "no", "-"
	case "origin":
		if d.Origin == "" {
			return "-", "-"
		}
		return d.Origin, "-"
	case "encryption":
		return "off", "default"
	case "receive_resume_token":
		return d.token(), "-"
	case "used", "referenced", "usedbydataset", "logicalused", "logicalreferenced", "written":
		return number(sizeOf(s.mountpoint(name))), "-"
	case "available":
		return "1000000000", "-"
	}
	if snap, ok := strings.CutPrefix(prop, "written@"); ok {
		if s.Snapshots[name+"@"+snap] == nil {
			return "-", "-"
		}
		return number(s.writtenSince(name + "@" + snap)), "local"
	}
	v, source := s.datasetProp(name, prop)
	if source == "-" {
		if def, ok := defaults[prop]; ok {
			return def, "default"
		}
	}
	return v, source
}

// defaults are what properties are that nobody has set.
var defaults = map[string]string{
	"mountpoint": "none", "canmount": "on", "compression": "on", "recordsize": "131072", "readonly": "off",
	"atime": "on", "xattr": "sa", "logbias": "latency", "sync": "standard", "primarycache": "all",
	"quota": "0", "refquota": "0", "reservation": "0", "refreservation": "0", "encryption": "off",
	"keystatus": "-", "snapdir": "hidden",
}

func (s *state) clones(full string) (names []string) {
	for name, d := range s.Datasets {
		if d.Origin == full {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// below are the things of a kind (filesystem, snapshot, bookmark) at and below a name, at
// most depth levels if that is not negative, in the order of zfs list.
func (s *state) below(name string, kinds []string, depth int) ([]string, error) {
	if !s.exists(name) {
		return nil, sayf("cannot open '%s': dataset does not exist", name)
	}
	want := func(kind string) bool { return slices.Contains(kinds, kind) || slices.Contains(kinds, "all") }
	if s.Datasets[name] == nil {
		return []string{name}, nil
	}
	var names []string
	for ds := range s.Datasets {
		if ds != name && !strings.HasPrefix(ds, name+"/") {
			continue
		}
		level := strings.Count(strings.TrimPrefix(ds, name), "/")
		if want("filesystem") && (depth < 0 || level <= depth) {
			names = append(names, ds)
		}
		if depth >= 0 && level+1 > depth {
			continue
		}
		var within []string
		if want("snapshot") {
			for full := range s.Snapshots {
				if datasetOf(full) == ds {
					within = append(within, full)
				}
			}
		}
		if want("bookmark") {
			for full := range s.Bookmarks {
				if datasetOf(full) == ds {
					within = append(within, full)
				}
			}
		}
		names = append(names, within...)
	}
	slices.SortFunc(names, func(a, b string) int {
		if da, db := datasetOf(a), datasetOf(b); da != db {
			return strings.Compare(da, db)
		}
		ta, tb := s.txg(a), s.txg(b)
		if ta != tb {
			return int(int64(ta) - int64(tb))
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

func (s *state) exists(name string) bool {
	return s.Datasets[name] != nil || s.Snapshots[name] != nil || s.Bookmarks[name] != nil
}

// txg is the order of things within a dataset, which itself comes first.
func (s *state) txg(name string) uint64 {
	if snap := s.Snapshots[name]; snap != nil {
		return snap.TXG
	}
	if b := s.Bookmarks[name]; b != nil {
		return b.TXG
	}
	return 0
}

func sizeOf(dir string) (n uint64) {
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.Name() == ".zfs" {
			return filepath.SkipDir
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			n += uint64(info.Size())
		}
		return nil
	})
	return n
}

// saying is what a command prints to stderr when it fails.
type saying string

func (s saying) Error() string { return string(s) }

func sayf(format string, args ...any) error { return saying(fmt.Sprintf(format, args...)) }
