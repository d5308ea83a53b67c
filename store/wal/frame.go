package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// FrameHeader is the number of bytes before the payload of a frame:
//
//	0  u32  length of the payload
//	4  u32  CRC-32C of bytes 8 to the payload's end, begun with the segment's salt
//	8  u64  sequence number, never 0
//
// Numbers are little endian. Frames begin at multiples of frameAlign; the
// bytes between them are zeros.
const FrameHeader = 16

// MaxPayload is the largest payload of a frame in bytes.
const MaxPayload = 1 << 30

const frameAlign = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func align(n int64) int64 { return (n + frameAlign - 1) &^ (frameAlign - 1) }

// sealFrame fills in the header of the frame whose payload begins at FrameHeader.
func sealFrame(frame []byte, seq uint64, salt uint32) {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-FrameHeader))
	binary.LittleEndian.PutUint64(frame[8:], seq)
	binary.LittleEndian.PutUint32(frame[4:], crc32.Update(salt, castagnoli, frame[8:]))
}

// frameSeq is the sequence number that the bytes at the start of b would have
// as a frame; 0 if b is too short for a header.
func frameSeq(b []byte) uint64 {
	if len(b) < FrameHeader {
		return 0
	}
	return binary.LittleEndian.Uint64(b[8:])
}

// parseFrame returns the frame at the start of b, header and payload, if it is whole.
func parseFrame(b []byte, salt uint32) (frame []byte, ok bool) {
	if frameSeq(b) == 0 {
		return nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > MaxPayload || n > int64(len(b)-FrameHeader) {
		return nil, false
	}
	frame = b[:FrameHeader+n]
	if crc32.Update(salt, castagnoli, frame[8:]) != binary.LittleEndian.Uint32(frame[4:]) {
		return nil, false
	}
	return frame, true
}

// findFrame looks in b for a whole frame with a sequence number of at least seq.
// It returns where it begins, or -1. It looks at every byte, since bytes that were lost or
// put in have moved what follows them.
func findFrame(b []byte, seq uint64, salt uint32) int64 {
	// No more frames than these fit behind one another.
	most := seq + uint64(len(b)/FrameHeader)
	var check *sums
	for off := range usedLen(b) {
		if s := frameSeq(b[off:]); s < seq || s > most {
			continue
		}
		n := int64(binary.LittleEndian.Uint32(b[off:]))
		if n > MaxPayload || n > int64(len(b)-off-FrameHeader) {
			continue
		}
		if check == nil {
			check = newSums(b)
		}
		if check.update(salt, off+8, off+FrameHeader+int(n)) == binary.LittleEndian.Uint32(b[off+4:]) {
			return int64(off)
		}
	}
	return -1
}
