package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
)

// The form of bbolt's pages: a header, elements of a fixed size, and the
// keys and values that the elements point at. Numbers are in the machine's byte
// order.
const (
	pageHeaderLen  = 16 // id 8, flags 2, count 2, overflow 4
	elementLen     = 16 // branch: position 4, key length 4, page 8; leaf: flags, position, key and value lengths, 4 each
	bucketValueLen = 16 // root page 8, sequence 8; a page follows if the root is 0

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf's element

	metaLen     = 64 // after the header: magic 4, version 4, page size 4, flags 4, root 8, its sequence 8, free list 8, pages 8, transaction 8, checksum 8
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreelist  = 1<<64 - 1 // as the free list's page: it is not in the file

	minPageSize = 1 << 10 // what bbolt looks for
	maxPageSize = 16 << 20

	// maxTransaction is far from what can be counted to, and leaves room to go on: bbolt would take
	// an overflown number for an old one.
	maxTransaction = math.MaxUint64 - 1<<32
)

// metaPage is what the file's beginning says about the rest.
type metaPage struct {
	pageSize    uint64
	root        uint64 // page of the bucket that holds the buckets
	freelist    uint64 // page, or noFreelist
	pages       uint64 // pages below the high-water mark; what follows is not used
	transaction uint64
}

// findMeta returns the meta page that bbolt would go by: the newer one of those that
// are whole.
func findMeta(file []byte) (metaPage, error) {
	m, ok := readMetaPage(file, 0)
	if ok && !m.fits() {
		return m, fmt.Errorf("its pages can not have a size of %d", m.pageSize)
	}
	for size := uint64(minPageSize); size <= maxPageSize; size *= 2 {
		if ok && size != m.pageSize {
			continue
		}
		second, found := readMetaPage(file, size)
		if !found {
			continue
		}
		if second.pageSize != size {
			return m, fmt.Errorf("the second meta page is at byte %d, but says that pages have a size of %d", size, second.pageSize)
		}
		if !ok || second.transaction > m.transaction {
			m, ok = second, true
		}
		break
	}
	switch {
	case !ok:
		return m, errors.New("neither of its two meta pages is whole; is it a database at all?")
	case m.pages > uint64(len(file))/m.pageSize:
		return m, fmt.Errorf("it is cut off: %d bytes instead of at least %d pages of %d", len(file), m.pages, m.pageSize)
	case m.transaction > maxTransaction:
		return m, fmt.Errorf("its transactions are numbered up to %d", m.transaction)
	}
	return m, nil
}

// fits tells whether the size of pages is one that bbolt can work with.
func (m metaPage) fits() bool {
	return m.pageSize >= minPageSize && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0
}

// readMetaPage reads the meta page at a place; ok is false if there is no whole one.
func readMetaPage(file []byte, at uint64) (m metaPage, ok bool) {
	if at+pageHeaderLen+metaLen > uint64(len(file)) {
		return m, false
	}
	b := file[at+pageHeaderLen:][:metaLen]
	number := binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(b[:metaLen-8])
	if number.Uint32(b) != metaMagic || number.Uint32(b[4:]) != metaVersion || number.Uint64(b[metaLen-8:]) != sum.Sum64() {
		return m, false
	}
	return metaPage{
		pageSize: uint64(number.Uint32(b[8:])), root: number.Uint64(b[16:]), freelist: number.Uint64(b[32:]),
		pages: number.Uint64(b[40:]), transaction: number.Uint64(b[48:]),
	}, true
}
