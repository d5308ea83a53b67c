package tree

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// freeSpace is which pages are free, as the file itself says.
//
// A page that a transaction freed is in use by the one before, to which a crash can go back if the newest meta page
// is lost, and which open reads may see. What is free in both is of no use to
// either. The transactions' lists are both in the file: a list's page is free for use only one commit later.
type freeSpace struct {
	transaction     uint64 // the newest
	pageSize, pages uint64
	newest          bitmap // free in the newest transaction
	both            bitmap // and in the one before, none if that one is not known
}

// freeSpace reads the lists of free pages. Nothing may be written meanwhile.
func (h *handle) freeSpace() (f freeSpace, err error) {
	file, err := h.mapped()
	if err != nil {
		return f, err
	}
	pageSize := uint64(h.db.Info().PageSize)
	m, ok := readMetaPage(file, 0)
	before, found := readMetaPage(file, pageSize)
	if !ok || found && before.transaction > m.transaction {
		m, before, found = before, m, ok
	}
	f = freeSpace{transaction: m.transaction, pageSize: pageSize, pages: m.pages}
	if f.newest, err = freePagesOf(file, m, m.pages); err != nil {
		return f, fmt.Errorf("the list of free pages (page %d): %w", m.freelist, err)
	}
	if !found || before.transaction+1 != m.transaction {
		f.both = newBitmap(m.pages)
	} else if f.both, err = freePagesOf(file, before, m.pages); err != nil {
		return f, fmt.Errorf("the list of free pages before (page %d): %w", before.freelist, err)
	}
	for i := range f.both {
		f.both[i] &= f.newest[i]
	}
	return f, nil
}

// mapped returns the file's pages. They stay where they are while nothing is written.
func (h *handle) mapped() ([]byte, error) {
	tx, err := h.db.Begin(false)
	if err != nil {
		return nil, err
	}
	size := tx.Size()
	if err := tx.Rollback(); err != nil {
		return nil, err
	}
	info := h.db.Info()
	base := *(*unsafe.Pointer)(unsafe.Pointer(&info.Data)) // not memory of the garbage collector
	return unsafe.Slice((*byte)(base), size), nil
}

// freePagesOf returns which of the first n pages are free in a transaction: none if the file does not say.
func freePagesOf(file []byte, m metaPage, n uint64) (bitmap, error) {
	free := newBitmap(n)
	if m.freelist == noFreelist {
		return free, nil
	}
	page := file[m.freelist*m.pageSize:]
	more := uint64(binary.NativeEndian.Uint32(page[12:]))
	list, err := freeIDs(page[:(more+1)*m.pageSize])
	if err != nil {
		return nil, err
	}
	for ; len(list) > 0; list = list[freeIDLen:] {
		id := binary.NativeEndian.Uint64(list)
		if id < 2 || id >= m.pages {
			return nil, fmt.Errorf("there is no page %d among %d", id, m.pages)
		}
		if id < n {
			free.set(id)
		}
	}
	return free, nil
}

// span is a part of a file.
type span struct{ from, to int64 }

func (s span) len() int64 { return s.to - s.from }

// spans returns the runs of pages in a set, cut to whole blocks and into parts that are not
// too long, without those that are too short.
func (f freeSpace) spans(set bitmap, rule giveRule, block int64) (spans []span) {
	size := int64(f.pageSize)
	for at := set.next(0, true); at < f.pages; {
		end := min(set.next(at, false), f.pages)
		from, to := (int64(at)*size+block-1)/block*block, int64(end)*size/block*block
		for ; to-from >= rule.run; from += rule.part {
			spans = append(spans, span{from, min(to, from+rule.part)})
		}
		at = set.next(end, true)
	}
	return spans
}

// next returns the first number from n on that is in the set, or is not. Behind the last word
// there is neither.
func (b bitmap) next(n uint64, in bool) uint64 {
	for n < uint64(len(b))*64 {
		word := b[n/64]
		if !in {
			word = ^word
		}
		if word >>= n % 64; word != 0 {
			return n + uint64(bits.TrailingZeros64(word))
		}
		n = (n/64 + 1) * 64
	}
	return n
}

// holeBlock is the least that is given back, in bytes.
const holeBlock = 4 << 10

// blockSize is what holes begin and end at: a part of a block would be written with zeros instead.
func (h *handle) blockSize() int64 {
	const most = 128 << 10
	info, err := h.file.Stat()
	if err != nil {
		return most
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(max(int64(st.Blksize), holeBlock), most)
	}
	return most
}

// dataIn returns how many bytes of a part of a file have blocks. Where the file system can not tell,
// all have. It may have to write what is in memory to tell (ZFS does).
func dataIn(f *os.File, s span) (n int64) {
	for at := s.from; at < s.to; {
		data, ok := nextData(f, at)
		if !ok {
			return n + s.to - at
		}
		if data >= s.to {
			return n
		}
		end, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		if err != nil || end <= data {
			return n + s.to - data
		}
		at = min(end, s.to)
		n += at - data
	}
	return n
}

// nextData returns the first place from at on that has blocks, the end of all files if none has; ok is false where the file
// system can not tell. The descriptor's offset, which it moves, is used by nobody.
func nextData(f *os.File, at int64) (data int64, ok bool) {
	data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch err {
	case nil:
		return data, data >= at
	case unix.ENXIO:
		return 1<<63 - 1, true
	}
	return at, false
}
