package zfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MountTable is where the kernel lists the mounts that this process sees.
const MountTable = "/proc/self/mountinfo"

// Mount is one line of the mount table, as far as it is needed here.
type Mount struct {
	id, parent string
	Device     string // the number of the file system, "major:minor", as stat has it
	Root       string // the directory of the file system that is mounted: / for all of it
	Point      string // where it is mounted
	FSType     string
	Source     string // the dataset, for ZFS
}

// ReadMounts reads a mount table, MountTable for what is mounted now.
func ReadMounts(table string) ([]Mount, error) {
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseMountinfo(f)
}

func parseMountinfo(r io.Reader) ([]Mount, error) {
	var mounts []Mount
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // overlay mounts list their layers in one line
	for lines.Scan() {
		// Before the dash: id, parent, device, root, mount point, options and
		// any number of optional fields. Behind it: type, source, options.
		before, behind, ok := strings.Cut(lines.Text(), " - ")
		head, tail := strings.Fields(before), strings.Fields(behind)
		if !ok || len(head) < 6 || len(tail) < 2 {
			return nil, fmt.Errorf("line %d of the mount table is not understood: %q", len(mounts)+1, lines.Text())
		}
		mounts = append(mounts, Mount{
			id: head[0], parent: head[1], Device: head[2], Root: unescapeMount(head[3]), Point: unescapeMount(head[4]),
			FSType: tail[0], Source: unescapeMount(tail[1]),
		})
	}
	return mounts, lines.Err()
}

// unescapeMount undoes the kernel's escapes for blanks and backslashes.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// MountOf finds the mount that holds an absolute path, the way that a path is
// looked up: from the root on, and from each mount on into the one that covers
// the next part. The longest mount point alone would be wrong where a later
// mount hides an earlier one.
func MountOf(mounts []Mount, path string) (Mount, bool) {
	at := slices.IndexFunc(mounts, func(m Mount) bool {
		return m.Point == "/" && !slices.ContainsFunc(mounts, func(p Mount) bool { return p.id == m.parent && p.id != m.id })
	})
	if at < 0 {
		return Mount{}, false
	}
	current := mounts[at]
	for range mounts { // each step goes one mount up, so this many are enough
		next, found := Mount{}, false
		for _, m := range mounts {
			if m.parent == current.id && m.id != current.id && holds(m.Point, path) &&
				(!found || len(m.Point) < len(next.Point)) {
				next, found = m, true
			}
		}
		if !found {
			break
		}
		current = next
	}
	return current, true
}

// holds tells whether path is dir or below it.
func holds(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// ExistingPath resolves dir, or the nearest directory above it that exists:
// that is where it would be made.
func ExistingPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		var path string
		path, err = filepath.EvalSymlinks(dir)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			break
		}
		// A link to nowhere is not a directory that is yet to be made.
		if _, linkErr := os.Lstat(dir); linkErr == nil {
			break
		}
		dir, err = filepath.Dir(dir), nil
	}
	return "", err
}
