// Package harm damages a tree's file for tests, in the ways that disks and programs do and in
// some that only a person can.
package harm

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
)

// Apply damages a copy of a file with pages of a size as a script tells it: a kind of damage, a page,
// and then numbers. Offsets in a page are 16 bits, all else one byte. A script that ends early goes on
// with zeros, so each is valid.
func Apply(file []byte, pageSize int, script []byte) []byte {
	h := &harmer{size: pageSize, left: script}
	return h.run(bytes.Clone(file))
}

type harmer struct {
	size int // of a page
	left []byte
}

func (h *harmer) byte() int {
	if len(h.left) == 0 {
		return 0
	}
	b := h.left[0]
	h.left = h.left[1:]
	return int(b)
}

// value is 1, 2, 4 or 8 bytes; of 8 bytes it has the lowest three and the highest.
func (h *harmer) value(width int) uint64 {
	n := uint64(h.byte())
	if width > 1 {
		n |= uint64(h.byte()) << 8
	}
	if width > 2 {
		n |= uint64(h.byte())<<16 | uint64(h.byte())<<(8*(width-1))
	}
	return n
}

// page is one of the file's pages; the last one may be cut.
func (h *harmer) page(b []byte) []byte {
	start := h.byte() * h.size % max(1, len(b))
	return b[start:min(len(b), start+h.size)]
}

func (h *harmer) offset() int { return (h.byte()<<8 | h.byte()) % h.size }

// The kinds of damage. Scripts have their numbers: new ones go to the end.
const (
	flip byte = iota
	cut
	swap
	copyOver
	clearBytes
	number
	metaField
	insert
	replace
	ownID
	kinds
)

func (h *harmer) run(b []byte) []byte {
	for len(h.left) > 0 && len(b) > 0 {
		kind := byte(h.byte()) % kinds
		page := h.page(b)
		at := min(h.offset(), len(page)-1)
		switch kind {
		case flip:
			page[at] ^= 1 << (h.byte() % 8)
		case cut:
			b = b[:cap(b)-cap(page)+at]
		case swap:
			other := h.page(b)
			was := bytes.Clone(page)
			copy(page, other)
			copy(other, was)
		case copyOver:
			copy(page, h.page(b))
		case clearBytes:
			clear(page[at:min(len(page), at+4*h.byte())])
		case number:
			var n [8]byte
			width := 1 << (h.byte() % 4)
			binary.NativeEndian.PutUint64(n[:], h.value(width))
			copy(page[at:], n[:width])
		case metaField:
			h.meta(page)
		case insert:
			n := min(h.byte(), len(h.left))
			start := cap(b) - cap(page) + at
			b = append(bytes.Clone(b[:start]), append(bytes.Clone(h.left[:n]), b[start:]...)...)
			h.left = h.left[n:]
		case replace:
			copy(page[at:], h.left)
			h.left = h.left[min(len(h.left), h.size):]
		case ownID: // as if it were the page that belongs there
			if len(page) >= 8 {
				binary.NativeEndian.PutUint64(page, uint64((cap(b)-cap(page))/h.size))
			}
		}
	}
	return b
}

// meta sets a field of a meta page and makes its checksum right.
func (h *harmer) meta(page []byte) {
	const header, sum = 16, 56
	if len(page) < header+sum+8 {
		return
	}
	body := page[header:]
	fields := []int{0, 4, 8, 12, 16, 24, 32, 40, 48}
	if n := h.byte(); n < len(fields) {
		binary.NativeEndian.PutUint64(body[fields[n]:], h.value(8))
	}
	f := fnv.New64a()
	f.Write(body[:sum])
	binary.NativeEndian.PutUint64(body[sum:], f.Sum64())
}

// Seeds are scripts with damages of each kind, on the meta pages and on those of records.
func Seeds() (seeds [][]byte) {
	for kind := range kinds {
		for _, page := range []byte{0, 1, 3, 9, 20} {
			seeds = append(seeds, []byte{kind, page, 0, 8, 1, 5, 7, 0, 0}, []byte{kind, page, 0, 40, 2, 255, 255, 3, 0x80})
		}
	}
	for field := byte(0); field < 9; field++ {
		for _, page := range []byte{0, 1} {
			seeds = append(seeds, []byte{metaField, page, 0, 0, field, 5, 0, 0, 0}, []byte{metaField, page, 0, 0, field, 255, 255, 255, 255})
		}
	}
	return append(seeds, nil, []byte{clearBytes, 0, 0, 0, 255}, []byte{clearBytes, 1, 0, 0, 255},
		[]byte{swap, 5, 0, 0, 9, ownID, 5, 0, 0, ownID, 9, 0, 0})
}
