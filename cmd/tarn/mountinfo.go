package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// mount is one line of /proc/self/mountinfo, as far as it is needed here.
type mount struct {
	id, parent string
	point      string // where it is mounted
	fsType     string
	source     string // the dataset, for ZFS
}

func parseMountinfo(r io.Reader) ([]mount, error) {
	var mounts []mount
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
		mounts = append(mounts, mount{
			id: head[0], parent: head[1], point: unescapeMount(head[4]),
			fsType: tail[0], source: unescapeMount(tail[1]),
		})
	}
	return mounts, lines.Err()
}

// unescapeMount undoes the kernel's escapes for blanks and backslashes.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// mountOf finds the mount that holds an absolute path, the way that a path is
// looked up: from the root on, and from each mount on into the one that covers
// the next part. The longest mount point alone would be wrong where a later
// mount hides an earlier one.
func mountOf(mounts []mount, path string) (mount, bool) {
	at := slices.IndexFunc(mounts, func(m mount) bool {
		return m.point == "/" && !slices.ContainsFunc(mounts, func(p mount) bool { return p.id == m.parent && p.id != m.id })
	})
	if at < 0 {
		return mount{}, false
	}
	current := mounts[at]
	for range mounts { // each step goes one mount up, so this many are enough
		next, found := mount{}, false
		for _, m := range mounts {
			if m.parent == current.id && m.id != current.id && holds(m.point, path) &&
				(!found || len(m.point) < len(next.point)) {
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
