package zfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// copiesSuffix is what the directory of the copies is called after the data directory.
	copiesSuffix = "-snapshots"
	recordName   = "snapshot.json"
	// unfinishedPrefix begins the names of directories that are being made or
	// removed. Whoever works on one holds its lock; others may be removed.
	unfinishedPrefix = ".unfinished-"
)

// Copies are snapshots for directories that are on no ZFS: copies of the files, in
// a directory beside the data directory. They share their blocks with the data
// where the file system can do that.
type Copies struct {
	dir  string // the data directory, resolved
	root string // where the copies are
}

// NewCopies are the file copies of the data directory dir.
func NewCopies(dir string) (*Copies, error) {
	path, err := resolve(dir)
	if err != nil {
		return nil, fmt.Errorf("find the snapshots of %s: %w", dir, err)
	}
	if path == "/" {
		return nil, errors.New("find the snapshots of /: the root directory can not be a data directory")
	}
	return &Copies{dir: path, root: path + copiesSuffix}, nil
}

// Source is the data directory.
func (c *Copies) Source() string { return c.dir }

// Dir is the data directory.
func (c *Copies) Dir() string { return c.dir }

// Root is the directory that has a directory for each copy.
func (c *Copies) Root() string { return c.root }

// copyRecord is what recordName holds of a copy.
type copyRecord struct {
	Format     int               `json:"format"` // 1
	Name       string            `json:"name"`
	Order      uint64            `json:"order"`
	GUID       string            `json:"guid"`
	Created    time.Time         `json:"created"`
	Properties map[string]string `json:"properties"`
	Holds      []string          `json:"holds,omitempty"`
}

// List returns our snapshots, the oldest first.
func (c *Copies) List(ctx context.Context) ([]Snapshot, error) {
	entries, err := os.ReadDir(c.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of %s: %w", c.dir, fileKind(err))
	}
	var snaps []Snapshot
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list the snapshots of %s: %w", c.dir, err)
		}
		if _, ok := ParseName(e.Name()); !ok {
			continue
		}
		s, err := c.get(e.Name())
		switch {
		case errors.Is(err, ErrNotOurs), errors.Is(err, ErrNotFound): // or destroyed meanwhile
		case err != nil:
			return nil, err
		default:
			snaps = append(snaps, s)
		}
	}
	slices.SortFunc(snaps, byOrder)
	return snaps, nil
}

// get reads one snapshot.
func (c *Copies) get(name string) (Snapshot, error) {
	r, err := c.record(name)
	if err != nil {
		return Snapshot{}, err
	}
	props := map[string]Property{}
	for name, value := range r.Properties {
		props[name] = Property{Value: value, Source: "local"}
	}
	s, ok := newSnapshot(name, props)
	if !ok {
		return Snapshot{}, notOurs(c.path(name), "its "+recordName+" has no number as "+PropRevision)
	}
	s.Created, s.Order, s.GUID, s.Holds = r.Created, r.Order, r.GUID, r.Holds
	s.SizeBytes, s.UniqueBytes = treeSize(c.path(name))
	return s, nil
}

func (c *Copies) path(name string) string { return filepath.Join(c.root, name) }

func (c *Copies) record(name string) (*copyRecord, error) {
	path := c.path(name)
	if _, ok := ParseName(name); !ok {
		return nil, notOurs(path, "its name is not of the form "+exampleName)
	}
	if _, err := os.Lstat(path); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", path, fileKind(err))
	}
	text, err := os.ReadFile(filepath.Join(path, recordName))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, notOurs(path, "it has no "+recordName)
	case err != nil:
		return nil, fmt.Errorf("snapshot %s: %w", path, fileKind(err))
	}
	r := &copyRecord{}
	if err := json.Unmarshal(text, r); err != nil || r.Format != 1 || r.Name != name {
		return nil, notOurs(path, "its "+recordName+" is not one that tarn wrote for it")
	}
	return r, nil
}

// treeSize is what files take: by their lengths, and on the disk, as far as that
// can be told: blocks that several copies share are counted for each.
func treeSize(dir string) (size, allocated int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it may be about to go: then it has no size
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
			if sys, ok := info.Sys().(*syscall.Stat_t); ok {
				allocated += sys.Blocks * 512
			}
		}
		return nil
	})
	return size, allocated
}

// fileKind gives the error of a file operation its kind.
func fileKind(err error) error {
	for _, k := range []struct{ is, kind error }{
		{fs.ErrNotExist, ErrNotFound}, {fs.ErrPermission, ErrPermission},
		{syscall.ENOSPC, ErrNoSpace}, {syscall.EDQUOT, ErrNoSpace},
	} {
		if errors.Is(err, k.is) {
			return fmt.Errorf("%w: %w", k.kind, err)
		}
	}
	return err
}

func newGUID(random [8]byte) string {
	var n uint64
	for _, b := range random {
		n = n<<8 | uint64(b)
	}
	return strconv.FormatUint(n, 10)
}
