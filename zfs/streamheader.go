package zfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A stream of zfs is a row of records of one size, some with data behind them. The
// first begins a snapshot and the last ends it; both name it. That much is read
// here, so that a file that was cut off, or is the stream of another snapshot,
// is noticed where there is no ZFS.
const (
	recordSize    = 312
	recordBegin   = 0
	recordEnd     = 5
	beginMagic    = 0x2F5bacbac
	toGUIDAt      = 40 // in a begin record
	fromGUIDAt    = 48
	toGUIDInEndAt = 40
)

var errNoStream = errors.New("it is not a stream of one snapshot from zfs send")

// streamGUIDs reads from and to of a stream of size bytes. from is "" for a full one.
func streamGUIDs(r io.ReaderAt, size int64) (from, to string, err error) {
	var first, last [recordSize]byte
	if size < 2*recordSize {
		return "", "", fmt.Errorf("%w: it has %d bytes", errNoStream, size)
	}
	if _, err := r.ReadAt(first[:], 0); err != nil {
		return "", "", err
	}
	if _, err := r.ReadAt(last[:], size-recordSize); err != nil {
		return "", "", err
	}
	// Numbers are in the byte order of the machine that sent.
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint64(first[8:]) != beginMagic {
		order = binary.BigEndian
	}
	if order.Uint32(first[:]) != recordBegin || order.Uint64(first[8:]) != beginMagic {
		return "", "", errNoStream
	}
	toGUID, fromGUID := order.Uint64(first[toGUIDAt:]), order.Uint64(first[fromGUIDAt:])
	if order.Uint32(last[:]) != recordEnd || order.Uint64(last[toGUIDInEndAt:]) != toGUID {
		return "", "", errors.New("the stream has no end: it was cut off")
	}
	if fromGUID != 0 {
		from = strconv.FormatUint(fromGUID, 10)
	}
	return from, strconv.FormatUint(toGUID, 10), nil
}

// checkStream compares a stream with what it should be.
func (f *StreamFile) checkStream(r io.ReaderAt) error {
	from, to, err := streamGUIDs(r, f.Size)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w: %w", f.File, ErrDamaged, err)
	case to != f.GUID, from != f.FromGUID:
		return fmt.Errorf("%s: %w: it is the stream from %s to %s, and should be from %s to %s (GUIDs)",
			f.File, ErrDamaged, orFull(from), to, orFull(f.FromGUID), f.GUID)
	}
	return nil
}

func orFull(guid string) string {
	if guid == "" {
		return "nothing"
	}
	return guid
}

// zstreamComplaint is what zstream dump prints, with exit code 0, when a checksum is wrong.
var zstreamComplaint = []byte("invalid checksum")

// complaints keeps whether zstream complained.
type complaints struct {
	tail  []byte
	found bool
}

func (c *complaints) Write(p []byte) (int, error) {
	c.tail = append(c.tail, p...)
	c.found = c.found || bytes.Contains(c.tail, zstreamComplaint)
	c.tail = append(c.tail[:0:0], c.tail[max(0, len(c.tail)-len(zstreamComplaint)):]...)
	return len(p), nil
}
