package simfs

import (
	"bytes"
	"os"

	"github.com/tarn-kv/tarn/store/vfs"
)

// PunchHole makes a hole in the real file, which then counts as synced. If the power is cut within it, an image
// has zeros in some of the pages.
func (s *FS) PunchHole(path string, f *os.File, off, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := Op{Kind: PunchHole, Path: path, Off: off, Len: size}
	d, name, err := s.locate(path)
	if err != nil {
		return err
	}
	crash, err := s.begin(op)
	if err != nil {
		return err
	}
	n, err := d.adopt(name, path)
	if err != nil {
		return err
	}
	if !crash {
		n.outside, n.pending = true, nil
		return vfs.OS.PunchHole(path, f, off, size)
	}
	s.cutLocked()
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after := bytes.Clone(before)
	clear(after[min(off, int64(len(after))):min(off+size, int64(len(after)))])
	s.torn = &commit{node: n, before: before, after: after}
	return op.fail(ErrPowerCut)
}
