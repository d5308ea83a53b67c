package simfs

import (
	"bytes"
	"math/rand/v2"
	"os"
)

// The parts of a mapped file, as bbolt lays it out: pages of 4 KiB of which the
// first two say which of the others are valid.
const (
	pageSize  = 4096
	metaPages = 2
)

// commit is a commit that a power cut fell into.
type commit struct {
	node          *node
	before, after []byte
}

// Commit calls commit and counts what the file then holds as synced. If the
// power is cut within it, commit is still called, as it writes past the seam,
// but an image holds any state on the way: some of the changed data pages; or
// all of them, synced, with or without a changed meta page, or a torn one.
func (s *FS) Commit(path string, fn func() error) error {
	op := Op{Kind: Commit, Path: path}
	s.mu.Lock()
	d, name, err := s.locate(path)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	crash, err := s.begin(op)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if !crash {
		s.mu.Unlock()
		return s.committed(d, name, path, fn())
	}
	s.cutLocked()
	before, err := os.ReadFile(path)
	s.mu.Unlock()
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	after, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := d.adopt(name, path)
	if err != nil {
		return err
	}
	s.torn = &commit{node: n, before: before, after: after}
	return op.fail(ErrPowerCut)
}

// committed notes that the file is written past the seam, and how it has grown.
func (s *FS) committed(d *dir, name, path string, result error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return result
	}
	n, err := d.adopt(name, path)
	if err != nil {
		return result // the commit failed before it made the file
	}
	n.outside, n.pending = true, nil
	if info, err := os.Stat(path); err == nil {
		s.giveBack(n.size - info.Size())
		n.size = info.Size()
	}
	return result
}

// image is the content of the file in the midst of the commit.
func (c *commit) image(rnd *rand.Rand) []byte {
	content := bytes.Clone(c.before)
	if rnd.IntN(4) == 0 {
		return content
	}
	content = resize(content, int64(len(c.after)))
	dataSynced := rnd.IntN(2) == 0
	for at := metaPages * pageSize; at < len(c.after); at += pageSize {
		if dataSynced || rnd.IntN(2) == 0 {
			copy(content[at:], c.after[at:min(at+pageSize, len(c.after))])
		}
	}
	if !dataSynced {
		return content
	}
	for at := 0; at < min(metaPages*pageSize, len(c.after)); at += pageSize {
		end := min(at+pageSize, len(c.after))
		switch rnd.IntN(3) {
		case 0: // absent
		case 1: // torn
			end = at + rnd.IntN(min(128, end-at))
			copy(content[at:end], c.after[at:end])
		default:
			copy(content[at:end], c.after[at:end])
		}
	}
	return content
}
