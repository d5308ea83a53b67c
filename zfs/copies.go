package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

const (
	// copiesSuffix is what the directory of the copies is called after the data directory.
	copiesSuffix = "-snapshots"
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

// List returns our snapshots, the oldest first.
func (c *Copies) List(ctx context.Context) ([]Snapshot, error) {
	entries, err := os.ReadDir(c.root)
	if errors.Is(err, fs.ErrNotExist) && c.badRoot() == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of %s: %w", c.dir, cmp.Or(c.badRoot(), c.explain(err)))
	}
	var snaps, damaged []Snapshot
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
		case s.Problem != "":
			damaged = append(damaged, s)
		default:
			snaps = append(snaps, s)
		}
	}
	slices.SortFunc(snaps, byOrder)
	for i := range damaged {
		damaged[i].Order = guessOrder(damaged[i], snaps)
	}
	snaps = append(snaps, damaged...)
	slices.SortFunc(snaps, byOrder)
	return snaps, nil
}

// guessOrder gives one whose description is damaged its place: behind the last of
// the sound ones, in their order, whose name has no later time.
func guessOrder(damaged Snapshot, sound []Snapshot) uint64 {
	for _, s := range slices.Backward(sound) {
		if name, _ := ParseName(s.Name); !name.Time.After(damaged.Created) {
			return s.Order
		}
	}
	return 0
}

// badRoot is the error of a root that is a symbolic link to nothing, or no directory, or nil.
func (c *Copies) badRoot() error {
	info, statErr := os.Stat(c.root)
	if statErr == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file and no directory: move it away, the snapshots are to be in a directory of that name", c.root)
	}
	to, err := os.Readlink(c.root)
	if err != nil || !errors.Is(statErr, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s is a symbolic link to %s, and that does not exist: mount the file system that it is on, make the directory, or remove the link", c.root, to)
}

// sound is get for what needs the description.
func (c *Copies) sound(name string) (Snapshot, error) {
	s, err := c.get(name)
	if err == nil && s.Problem != "" {
		err = fmt.Errorf("snapshot %s: %w: %s; tarn restore %s reads its files all the same, tarn snapshot destroy removes it",
			c.path(name), ErrDamaged, s.Problem, c.path(name))
	}
	return s, err
}

// get reads one snapshot, also one whose description is damaged.
func (c *Copies) get(name string) (Snapshot, error) {
	if err := c.isCopy(name); err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	r, err := c.record(name)
	if err == nil {
		s, err = r.snapshot()
	}
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return Snapshot{}, fmt.Errorf("snapshot %s: %w", c.path(name), c.explain(err))
		}
		// It can have been destroyed since it was looked at.
		if again := c.isCopy(name); again != nil {
			return Snapshot{}, again
		}
		parsed, _ := ParseName(name)
		s = Snapshot{Name: name, Created: parsed.Time, Revision: parsed.Revision, Problem: err.Error()}
	}
	s.SizeBytes, s.UniqueBytes = treeSize(c.path(name))
	return s, nil
}

func (c *Copies) path(name string) string { return filepath.Join(c.root, name) }

// isCopy tells whether a name is that of a directory: what has our name in the directory of
// the copies was published there as a whole, also if all that was in it is gone by now.
func (c *Copies) isCopy(name string) error {
	path := c.path(name)
	if _, ok := ParseName(name); !ok {
		return notOurs(path, "its name is not of the form "+exampleName)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", path, c.explain(err))
	}
	if !info.IsDir() {
		return notOurs(path, "it is no directory, and tarn makes no symbolic links")
	}
	return nil
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

func newGUID(random [8]byte) string {
	var n uint64
	for _, b := range random {
		n = n<<8 | uint64(b)
	}
	return strconv.FormatUint(n, 10)
}
