package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// freelist checks the list of free pages, after all others: bbolt writes over what it names. A
// page that is neither free nor used is only lost.
func (w *pageWalk) freelist() {
	if w.meta.freelist == noFreelist || w.stop {
		return
	}
	if err := w.freePages(); err != nil {
		w.reportf("the list of free pages (page %d): %v", w.meta.freelist, err)
	}
}

func (w *pageWalk) freePages() error {
	b, err := w.take(w.meta.freelist)
	if err != nil {
		return err
	}
	list, err := freeIDs(b)
	if err != nil {
		return err
	}
	free := newBitmap(w.meta.pages)
	for ; len(list) > 0; list = list[freeIDLen:] {
		id := binary.NativeEndian.Uint64(list)
		switch {
		case id < 2 || id >= w.meta.pages:
			return fmt.Errorf("there is no page %d among %d", id, w.meta.pages)
		case w.used.has(id):
			return fmt.Errorf("page %d is in use", id)
		case free.has(id):
			return fmt.Errorf("page %d is in it twice", id)
		}
		free.set(id)
		if w.ended() {
			return errors.New("the check was ended")
		}
	}
	return nil
}

// freeIDLen is the length of a page's number in the list.
const freeIDLen = 8

// freeIDs returns the numbers that the page of the list of free pages holds.
func freeIDs(page []byte) ([]byte, error) {
	if flags := binary.NativeEndian.Uint16(page[8:]); flags != flagFreelist {
		return nil, fmt.Errorf("it is a page of type %#x", flags)
	}
	const inList = 0xFFFF
	count, list := uint64(binary.NativeEndian.Uint16(page[10:])), page[pageHeaderLen:]
	if count == inList {
		count, list = binary.NativeEndian.Uint64(list), list[freeIDLen:]
	}
	if count > uint64(len(list)/freeIDLen) {
		return nil, fmt.Errorf("there is no room for %d pages", count)
	}
	return list[:count*freeIDLen], nil
}

// bitmap is a set of page numbers.
type bitmap []uint64

func newBitmap(n uint64) bitmap    { return make(bitmap, (n+63)/64) }
func (b bitmap) has(n uint64) bool { return b[n/64]&(1<<(n%64)) != 0 }
func (b bitmap) set(n uint64)      { b[n/64] |= 1 << (n % 64) }
