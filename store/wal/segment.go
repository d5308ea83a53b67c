package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A segment begins with a header of headerLen bytes:
//
//	 0  8 bytes  magic
//	 8  u32      format version
//	16  16 bytes store ID
//	32  u64      sequence number of the first frame
//	60  u32      CRC-32C of the bytes before
//
// The header's CRC is the salt of the segment's frames, so that bytes of
// another segment or another store never pass for frames of this one.
const (
	headerLen     = 64
	formatVersion = 1
	segmentSuffix = ".wal"
	newSuffix     = ".wal.new" // a segment not yet complete
)

var magic = []byte("tarn-wal")

// segment is one file of the log.
type segment struct {
	first uint64 // sequence number of the first frame
	size  int64  // bytes
}

func segmentName(first uint64) string { return fmt.Sprintf("%016x%s", first, segmentSuffix) }

func parseSegmentName(name string) (first uint64, ok bool) {
	first, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 16, 64)
	return first, err == nil && first > 0 && name == segmentName(first)
}

func segmentHeader(id [16]byte, first uint64) (header []byte, salt uint32) {
	h := make([]byte, headerLen)
	copy(h, magic)
	binary.LittleEndian.PutUint32(h[8:], formatVersion)
	copy(h[16:], id[:])
	binary.LittleEndian.PutUint64(h[32:], first)
	salt = crc32.Checksum(h[:headerLen-4], castagnoli)
	binary.LittleEndian.PutUint32(h[headerLen-4:], salt)
	return h, salt
}

// checkHeader checks the header at the start of the segment's content. A zero
// id stands for any store's.
func checkHeader(file string, content []byte, id [16]byte, first uint64) (salt uint32, err error) {
	bad := func(reason string) error { return &CorruptError{File: file, Reason: reason} }
	if len(content) < headerLen {
		return 0, bad("the file is shorter than a segment's header")
	}
	h := content[:headerLen]
	salt = binary.LittleEndian.Uint32(h[headerLen-4:])
	if !bytes.Equal(h[:len(magic)], magic) || crc32.Checksum(h[:headerLen-4], castagnoli) != salt {
		return 0, bad("the segment's header is damaged")
	}
	if v := binary.LittleEndian.Uint32(h[8:]); v != formatVersion {
		return 0, fmt.Errorf("%w: %s has version %d, this program knows %d; use the program that wrote it, or a newer one",
			ErrVersion, file, v, formatVersion)
	}
	if got := [16]byte(h[16:32]); id != [16]byte{} && got != id {
		return 0, fmt.Errorf("%w: %s is of store %x, not of %x; put the matching files together again",
			ErrForeign, file, got, id)
	}
	if got := binary.LittleEndian.Uint64(h[32:]); got != first {
		return 0, bad(fmt.Sprintf("the file was renamed: it begins with frame %d", got))
	}
	return salt, nil
}

// listSegments finds the segments in the directory, oldest first, and the
// names of segments that were never completed.
func listSegments(o Options) (segs []segment, unfinished []string, err error) {
	names, err := o.FS.List(o.Dir)
	if o.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("write-ahead log: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, newSuffix) {
			unfinished = append(unfinished, name)
			continue
		}
		if !strings.HasSuffix(name, segmentSuffix) {
			continue
		}
		first, ok := parseSegmentName(name)
		if !ok {
			return nil, nil, &CorruptError{File: filepath.Join(o.Dir, name), Reason: "not the name of a segment"}
		}
		segs = append(segs, segment{first: first})
	}
	slices.SortFunc(segs, func(a, b segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	return segs, unfinished, nil
}

func (o Options) path(first uint64) string { return filepath.Join(o.Dir, segmentName(first)) }
