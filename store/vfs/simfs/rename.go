package simfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Rename gives a file another name, perhaps in another directory, or a directory another name. A file
// that is renamed between directories is in the new one when it is not in the old one any more; until
// both are synced it can be in either, or in both. A directory is renamed durably or not at all.
func (s *FS) Rename(oldPath, newPath string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := Op{Kind: Rename, Path: oldPath, NewPath: newPath}
	d, oldName, err := s.locate(oldPath)
	if err != nil {
		return err
	}
	newD, newName, err := s.locate(newPath)
	if err != nil {
		return err
	}
	crash, err := s.begin(op)
	if err != nil {
		return err
	}
	if s.dirs[filepath.Clean(oldPath)] != nil {
		return s.renameDir(op, crash)
	}
	n, err := d.adopt(oldName, oldPath)
	if err != nil && crash {
		s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	if err != nil {
		return err
	}
	n.refresh(oldPath)
	replaced := newD.live[newName]
	if replaced != nil {
		replaced.refresh(newPath)
	}
	if crash {
		s.cutLocked()
	} else if err := os.Rename(oldPath, newPath); err != nil {
		return err
	}
	if replaced != nil && replaced != n {
		s.giveBack(replaced.size)
	}
	if newD == d {
		d.change(entryChange{name: newName, old: oldName, node: n})
	} else {
		newD.change(entryChange{name: newName, node: n})
		d.change(entryChange{name: oldName, to: newD, toName: newName})
	}
	if crash {
		return op.fail(ErrPowerCut)
	}
	return nil
}

// renameDir renames a directory with all that is in it.
func (s *FS) renameDir(op Op, crash bool) error {
	if crash {
		s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	from, to := filepath.Clean(op.Path), filepath.Clean(op.NewPath)
	if s.dirs[to] != nil {
		return op.fail(fmt.Errorf("simfs: %s is a directory already", to))
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	for path, d := range s.dirs {
		if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == filepath.Separator) {
			delete(s.dirs, path)
			s.dirs[to+rest] = d
		}
	}
	return nil
}

// settleMoved makes durable what must be so before the first n changes of d are: the new names of
// files that have left it. upTo tells how many changes of each directory reach the disk.
func (d *dir) settleMoved(n int, upTo map[*dir]int) (more bool) {
	for _, c := range d.pending[:n] {
		if c.to == nil {
			continue
		}
		at := slices.IndexFunc(c.to.pending, func(x entryChange) bool { return x.name == c.toName && x.node != nil })
		if at >= upTo[c.to] {
			upTo[c.to], more = at+1, true
		}
	}
	return more
}
