package tree

import (
	"io"
	"sync"
)

// Snapshot is the file at one point in time. Writes go on while it is open, but
// pages that it holds are not reused.
type Snapshot struct {
	tree *Tree
	tx   readTx
	once sync.Once
}

// Snapshot opens a consistent image of the file. Close it.
func (t *Tree) Snapshot() (*Snapshot, error) {
	tx, err := t.read()
	if err != nil {
		return nil, err
	}
	return &Snapshot{tree: t, tx: tx}, nil
}

// Size returns the number of bytes that WriteTo writes, a multiple of 512 (SNP-4).
func (s *Snapshot) Size() int64 { return s.tx.Size() }

// WriteTo writes the image: exactly Size bytes if there is no error.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	n, err := s.tx.WriteTo(w)
	if err != nil {
		return n, pathError("write a snapshot of", s.tree.opts.Path, err)
	}
	return n, nil
}

// Close ends the snapshot. It may be called more than once, but not during WriteTo.
func (s *Snapshot) Close() error {
	s.once.Do(func() { s.tree.endRead(s.tx) })
	return nil
}
