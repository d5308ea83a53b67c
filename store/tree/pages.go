package tree

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
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
	flagMeta     = 0x04
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf's element
)

// pageChecker looks at each page by itself. bbolt believes what a page says of
// lengths and places, so that a bad page makes it read outside the file. The
// pages are read, not mapped: a disk's error is then an error and no fault.
type pageChecker struct {
	tx       *bolt.Tx
	file     io.ReaderAt
	pageSize int
	pages    uint64 // pages below the high-water mark
	report   func(string)
	seen     []bool // pages that another one points at
}

func newPageChecker(h *handle, tx *bolt.Tx, report func(string)) *pageChecker {
	c := &pageChecker{tx: tx, file: h.file, pageSize: h.db.Info().PageSize, report: report}
	c.pages = uint64(tx.Size()) / uint64(c.pageSize)
	c.seen = make([]bool, c.pages)
	return c
}

// run checks all pages that are not free. It stops early at a page whose length
// is bad, since the next one can not be found then.
func (c *pageChecker) run(ctx context.Context) error {
	for id := uint64(0); id < c.pages; {
		if id%lookAround == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := c.tx.Page(int(id))
		if err != nil {
			return err
		}
		if info.Type == "free" {
			id++
			continue
		}
		if uint64(info.OverflowCount) >= c.pages-id {
			c.reportf("page %d: it says that it is %d pages long, but the file ends after %d", id, info.OverflowCount+1, c.pages-id)
			return nil
		}
		buf := make([]byte, (info.OverflowCount+1)*c.pageSize)
		if n, err := c.file.ReadAt(buf, int64(id)*int64(c.pageSize)); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the file is cut off")
			}
			c.reportf("offset %d: %v", int64(id)*int64(c.pageSize)+int64(n), err)
			return nil
		}
		if got := binary.NativeEndian.Uint64(buf); got != id {
			c.reportf("page %d: it says that it is page %d", id, got)
		}
		if err := c.page(buf); err != nil {
			c.reportf("page %d: %v", id, err)
		}
		id += uint64(info.OverflowCount) + 1
	}
	return nil
}

func (c *pageChecker) reportf(format string, args ...any) { c.report(fmt.Sprintf(format, args...)) }

// page checks a page, or one inside a value.
func (c *pageChecker) page(b []byte) error {
	if len(b) < pageHeaderLen {
		return fmt.Errorf("its %d bytes are too few", len(b))
	}
	flags, count := binary.NativeEndian.Uint16(b[8:]), int(binary.NativeEndian.Uint16(b[10:]))
	switch flags {
	case flagMeta, flagFreelist:
		return nil // read, with checks, when the file was opened
	case flagBranch, flagLeaf:
	default:
		return fmt.Errorf("there is no type %#x", flags)
	}
	body := b[pageHeaderLen:]
	if count*elementLen > len(body) {
		return fmt.Errorf("there is no room for %d elements", count)
	}
	for i := range count {
		element := body[i*elementLen:]
		check := c.leaf
		if flags == flagBranch {
			check = c.branch
		}
		if err := check(element); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// branch checks an element at the start of b.
func (c *pageChecker) branch(b []byte) error {
	pos, key := uint64(binary.NativeEndian.Uint32(b)), uint64(binary.NativeEndian.Uint32(b[4:]))
	if pos+key > uint64(len(b)) {
		return errors.New("the key is outside the page")
	}
	return c.refer(binary.NativeEndian.Uint64(b[8:]))
}

func (c *pageChecker) leaf(b []byte) error {
	var n [4]uint64 // flags, position, key length, value length
	for i := range n {
		n[i] = uint64(binary.NativeEndian.Uint32(b[4*i:]))
	}
	if n[1]+n[2]+n[3] > uint64(len(b)) {
		return errors.New("the record is outside the page")
	}
	if n[0]&flagBucket == 0 {
		return nil
	}
	value := b[n[1]+n[2]:][:n[3]]
	if len(value) < bucketValueLen {
		return errors.New("a bucket's value is too short")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return c.refer(root)
	}
	if err := c.page(value[bucketValueLen:]); err != nil {
		return fmt.Errorf("the bucket in it: %w", err)
	}
	return nil
}

// refer notes that a page is pointed at. Nothing may be twice: pages that form a
// loop would be walked for ever.
func (c *pageChecker) refer(id uint64) error {
	if id < 2 || id >= c.pages {
		return fmt.Errorf("it points at page %d of %d", id, c.pages)
	}
	if c.seen[id] {
		return fmt.Errorf("it points at page %d as another one does", id)
	}
	c.seen[id] = true
	return nil
}
