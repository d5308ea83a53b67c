package tree

import (
	"encoding/binary"
	"io"
)

// flagMeta is the type of a meta page.
const flagMeta = 0x04

// DamagedMeta tells which of the file's two meta pages, numbered from 0, is damaged; ok is false if
// both are whole. bbolt then goes by the other one, which can be that of the commit before. A power
// cut in a commit leaves such a page if the disk does not write a sector as a whole. The next
// commits write it again, so it is asked for before anything is written.
func (t *Tree) DamagedMeta() (page int, ok bool, err error) {
	tx, err := t.read()
	if err != nil {
		return 0, false, err
	}
	defer t.endRead(tx)
	return tx.handle.damagedMeta()
}

func (h *handle) damagedMeta() (page int, ok bool, err error) {
	size := h.db.Info().PageSize
	file := make([]byte, 2*size)
	if _, err := h.file.ReadAt(file, 0); err != nil {
		return 0, false, pathError("read the meta pages of", h.file.Name(), err)
	}
	for page := range 2 {
		at := page * size
		m, whole := readMetaPage(file, uint64(at))
		id, flags := binary.NativeEndian.Uint64(file[at:]), binary.NativeEndian.Uint16(file[at+8:])
		if !whole || m.pageSize != uint64(size) || id != uint64(page) || flags != flagMeta {
			return page, true, nil
		}
	}
	return 0, false, nil
}

// IsDatabase tells whether a file begins as one of bbolt does: with a meta page, damaged or not, in one of
// the two places where there is one. Only a failed read is an error.
func IsDatabase(f io.ReaderAt) (bool, error) {
	for at := int64(0); at <= maxPageSize; at = max(minPageSize, 2*at) {
		b := make([]byte, 4)
		n, err := f.ReadAt(b, at+pageHeaderLen)
		switch {
		case n == len(b) && binary.NativeEndian.Uint32(b) == metaMagic:
			return true, nil
		case err == io.EOF:
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return false, nil
}
