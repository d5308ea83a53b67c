package simfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// sectorSize is what a disk writes as a whole or not at all, in bytes.
const sectorSize = 512

// Image writes into dst, which it makes, what a disk may hold after a power
// cut, now or when it was. Changes of names have reached it up to some point,
// in order, for each directory. So have changes of a file's size. Each write
// since the last sync has reached it wholly, in some of its sectors, or not.
// The same calls and the same state of rnd give the same image.
func (s *FS) Image(dst string, rnd *rand.Rand) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cut {
		s.adoptAll()
	}
	upTo := map[*dir]int{}
	for _, path := range slices.Sorted(maps.Keys(s.dirs)) {
		d := s.dirs[path]
		upTo[d] = rnd.IntN(len(d.pending) + 1)
	}
	for more := true; more; {
		more = false
		for d := range upTo {
			more = d.settleMoved(upTo[d], upTo) || more
		}
	}
	contents := map[*node][]byte{}
	for _, path := range slices.Sorted(maps.Keys(s.dirs)) {
		d := s.dirs[path]
		rel, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dst, rel), 0o700); err != nil {
			return err
		}
		names := maps.Clone(d.synced)
		for _, c := range d.pending[:upTo[d]] {
			c.apply(names)
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			n := names[name]
			if _, done := contents[n]; !done {
				contents[n] = s.content(n, rnd)
			}
			if err := os.WriteFile(filepath.Join(dst, rel, name), contents[n], 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *FS) content(n *node, rnd *rand.Rand) []byte {
	if s.torn != nil && s.torn.node == n {
		return s.torn.image(rnd)
	}
	return n.image(rnd)
}

// image is the synced content with a random part of what came after.
func (n *node) image(rnd *rand.Rand) []byte {
	content := bytes.Clone(n.synced)
	sizesKept := rnd.IntN(countSizes(n.pending) + 1)
	for _, c := range n.pending {
		if c.data == nil {
			if sizesKept > 0 {
				sizesKept--
				content = c.apply(content)
			}
			continue
		}
		switch rnd.IntN(3) {
		case 0: // lost, though the file may have grown by it
			if end := c.off + int64(len(c.data)); rnd.IntN(2) == 0 && end > int64(len(content)) {
				content = resize(content, end)
			}
		case 1:
			content = c.tear(content, rnd)
		default:
			content = c.apply(content)
		}
	}
	return content
}

func countSizes(changes []change) int {
	n := 0
	for _, c := range changes {
		if c.data == nil {
			n++
		}
	}
	return n
}

// tear applies a random choice of the sectors that the write touches.
func (c change) tear(content []byte, rnd *rand.Rand) []byte {
	for at := 0; at < len(c.data); {
		off := c.off + int64(at)
		end := min(len(c.data), at+int(sectorSize-off%sectorSize))
		if rnd.IntN(2) == 0 {
			content = change{off, c.data[at:end]}.apply(content)
		}
		at = end
	}
	return content
}
