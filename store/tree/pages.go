package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// maxDepth is how many pages there can be on the way to a record, those of buckets in
// buckets included. A file as large as can be has ten.
const maxDepth = 64

// pageWalk goes through all pages that can be reached, before bbolt does or when Check asks
// for it. bbolt believes what a page says of lengths and places, follows pages that point at each other in a
// circle for ever, and gives out pages again that its list calls free: all that it relies on is
// looked at here.
type pageWalk struct {
	ctx    context.Context
	file   []byte // mapped
	meta   metaPage
	report func(string) // may set stop
	stop   bool
	brief  bool   // not the records, nor the list of free pages
	used   bitmap // pages that another one points at
	looks  int
	at     uint64 // the page that is being read
}

// checkPages walks the pages of a file and reports what is wrong. The error only says that it could
// not be done, or that ctx ended.
func checkPages(ctx context.Context, f *os.File, report func(string)) error {
	return walkFile(f, &pageWalk{ctx: ctx, report: report})
}

// firstDamage tells what is wrong with the pages of a file, "" if nothing is. With brief only those that
// lead to the file's own data are looked at.
func firstDamage(f *os.File, brief bool) (damage string, err error) {
	w := &pageWalk{ctx: context.Background(), brief: brief}
	w.report = func(text string) { damage, w.stop = text, true }
	err = walkFile(f, w)
	return damage, err
}

func walkFile(f *os.File, w *pageWalk) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < minPageSize || int64(int(info.Size())) != info.Size() {
		w.report(fmt.Sprintf("it has %d bytes", info.Size()))
		return nil
	}
	if w.file, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map the file: %w", err)
	}
	defer unix.Munmap(w.file)
	if !w.brief {
		defer readAhead(f, info.Size())()
	}
	w.run()
	return w.ctx.Err()
}

// run walks the file. A place that the disk can not give is a fault, and reported.
func (w *pageWalk) run() {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			if !isFault(r) {
				panic(r)
			}
			w.reportf("page %d can not be read: %v", w.at, r)
		}
	}()
	var err error
	if w.meta, err = findMeta(w.file); err != nil {
		w.report(err.Error())
		return
	}
	w.used = newBitmap(w.meta.pages)
	w.page(w.meta.root, nil, nil, 1, true)
	if !w.brief {
		w.freelist()
	}
}

func (w *pageWalk) reportf(format string, args ...any) {
	if !w.stop {
		w.report(fmt.Sprintf(format, args...))
	}
}

// ended tells whether to go no further.
func (w *pageWalk) ended() bool {
	if w.looks++; w.looks%lookAround == 0 && w.ctx.Err() != nil {
		w.stop = true
	}
	return w.stop
}

// page checks the page id and those below it. Its keys must begin with from, and be less than to, if
// these are not nil. top is the page of the bucket that holds all others.
func (w *pageWalk) page(id uint64, from, to []byte, depth int, top bool) {
	if w.ended() {
		return
	}
	if depth > maxDepth {
		w.reportf("page %d: it is more than %d pages away from the first one", id, maxDepth)
		return
	}
	b, err := w.take(id)
	if err != nil {
		w.reportf("page %d: %v", id, err)
		return
	}
	switch flags := binary.NativeEndian.Uint16(b[8:]); flags {
	case flagBranch:
		w.branch(id, b, from, to, depth, top)
	case flagLeaf:
		if from != nil && binary.NativeEndian.Uint16(b[10:]) == 0 {
			w.reportf("page %d: it is empty", id) // bbolt takes such a page away
			return
		}
		if err := w.leaf(b, from, to, depth, top, false); err != nil {
			w.reportf("page %d: %v", id, err)
		}
	default:
		w.reportf("page %d: it is no page of records (type %#x)", id, flags)
	}
}

// take returns the content of a page and of those that belong to it, and notes them as used: nothing
// may be twice.
func (w *pageWalk) take(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.pages {
		return nil, fmt.Errorf("there is no such page among %d", w.meta.pages)
	}
	w.at = id
	start := id * w.meta.pageSize
	if got := binary.NativeEndian.Uint64(w.file[start:]); got != id {
		return nil, fmt.Errorf("it says that it is page %d", got)
	}
	more := uint64(binary.NativeEndian.Uint32(w.file[start+12:]))
	if more >= w.meta.pages-id {
		return nil, fmt.Errorf("it says that it is %d pages long, but the file ends after %d", more+1, w.meta.pages-id)
	}
	for n := id; n <= id+more; n++ {
		if w.used.has(n) {
			return nil, fmt.Errorf("page %d is pointed at by another one as well", n)
		}
		w.used.set(n)
	}
	return w.file[start : start+(more+1)*w.meta.pageSize], nil
}

// elements returns the table of elements and checks that it fits.
func elements(b []byte) (table []byte, err error) {
	if len(b) < pageHeaderLen {
		return nil, fmt.Errorf("its %d bytes are too few", len(b))
	}
	count := int(binary.NativeEndian.Uint16(b[10:]))
	if pageHeaderLen+count*elementLen > len(b) {
		return nil, fmt.Errorf("there is no room for %d elements", count)
	}
	return b[pageHeaderLen:][:count*elementLen], nil
}

// part is the key, or the key and the value, of element i of a page.
func part(b, table []byte, i int, pos, n uint64) ([]byte, error) {
	start := uint64(pageHeaderLen+i*elementLen) + pos
	switch {
	case start+n > uint64(len(b)):
		return nil, fmt.Errorf("element %d is outside the page", i)
	case start < uint64(pageHeaderLen+len(table)):
		return nil, fmt.Errorf("element %d overlaps the table of elements", i)
	}
	return b[start : start+n], nil
}

// inOrder checks that a key follows on the one before in its page. The first one is the key by which its
// page is pointed at, if it is: bbolt relies on that when it writes.
func inOrder(i int, key, before, to []byte) error {
	c := bytes.Compare(key, before)
	switch {
	case len(key) == 0:
		return fmt.Errorf("element %d has no key", i)
	case i > 0 && c <= 0, i == 0 && before != nil && c != 0, to != nil && bytes.Compare(key, to) >= 0:
		return fmt.Errorf("the key of element %d (%x) is out of order", i, key)
	}
	return nil
}

// branch checks a page of pages.
func (w *pageWalk) branch(id uint64, b, from, to []byte, depth int, top bool) {
	table, err := elements(b)
	if err == nil && len(table) < 2*elementLen { // which bbolt merges, or puts in its parent's place
		err = fmt.Errorf("it points at %d pages, where bbolt has two at least", len(table)/elementLen)
	}
	keys := make([][]byte, 0, len(table)/elementLen)
	for i := 0; i < len(table)/elementLen && err == nil; i++ {
		e := table[i*elementLen:]
		var key []byte
		pos, n := uint64(binary.NativeEndian.Uint32(e)), uint64(binary.NativeEndian.Uint32(e[4:]))
		if key, err = part(b, table, i, pos, n); err == nil {
			err = inOrder(i, key, from, to)
			from, keys = key, append(keys, key)
		}
	}
	if err != nil {
		w.reportf("page %d: %v", id, err)
		return
	}
	for i, key := range keys {
		end := to
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		w.page(binary.NativeEndian.Uint64(table[i*elementLen+8:]), key, end, depth+1, top)
	}
}

// leaf checks a page of records and buckets, or one inside a bucket's value.
func (w *pageWalk) leaf(b, from, to []byte, depth int, top, inside bool) error {
	table, err := elements(b)
	if err != nil {
		return err
	}
	for i := 0; i < len(table)/elementLen && !w.ended(); i++ {
		var n [4]uint64 // flags, position, key length, value length
		for j := range n {
			n[j] = uint64(binary.NativeEndian.Uint32(table[i*elementLen+4*j:]))
		}
		record, err := part(b, table, i, n[1], n[2]+n[3])
		if err != nil {
			return err
		}
		key := record[:n[2]]
		if err := inOrder(i, key, from, to); err != nil {
			return err
		}
		from = key
		switch {
		case n[0] > flagBucket, n[0] == 0 && top, n[0] == flagBucket && inside:
			return fmt.Errorf("element %d can not be of type %#x", i, n[0])
		case w.brief && top && bytes.Equal(key, bucketKey):
		case n[0] == flagBucket:
			if err := w.bucket(record[n[2]:], depth); err != nil {
				return fmt.Errorf("bucket %q: %w", key, err)
			}
		}
	}
	return nil
}

// bucket checks a bucket by its value. A small one has its only page in there.
func (w *pageWalk) bucket(value []byte, depth int) error {
	if len(value) < bucketValueLen {
		return fmt.Errorf("its value has only %d bytes", len(value))
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		w.page(root, nil, nil, depth+1, false)
		return nil
	}
	page := value[bucketValueLen:]
	if _, err := elements(page); err != nil {
		return err
	}
	if id, flags := binary.NativeEndian.Uint64(page), binary.NativeEndian.Uint16(page[8:]); id != 0 || flags != flagLeaf {
		return fmt.Errorf("the page in it is not one of records (page %d, type %#x)", id, flags)
	}
	return w.leaf(page, nil, nil, depth, false, true)
}
