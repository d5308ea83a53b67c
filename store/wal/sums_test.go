package wal

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"
)

func TestSumsOfParts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, size := range []int{0, 1, sumStep - 1, sumStep, sumStep + 1, 100_000} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		s := newSums(b)
		for range 300 {
			from := rnd.IntN(size + 1)
			to := from + rnd.IntN(size-from+1)
			crc := rnd.Uint32()
			if got, want := s.update(crc, from, to), crc32.Update(crc, castagnoli, b[from:to]); got != want {
				t.Fatalf("%d bytes, from %d to %d: %08x, want %08x", size, from, to, got, want)
			}
		}
	}
}

// TestManyLikelyFrames has a torn frame whose content looks like the header of a
// very long frame at every place that can: its length and number are possible,
// its checksum is not right. With a checksum of its own for each of them
// the test would not end.
func TestManyLikelyFrames(t *testing.T) {
	const size, seq = 4 << 20, 2
	b := make([]byte, size)
	for off := 0; off+FrameHeader <= size; off += FrameHeader {
		binary.LittleEndian.PutUint32(b[off:], uint32(size-off-FrameHeader))
		binary.LittleEndian.PutUint32(b[off+4:], uint32(off))
		binary.LittleEndian.PutUint64(b[off+8:], seq)
	}
	if at := findFrame(b, seq, 1); at >= 0 {
		t.Errorf("a frame was found at byte %d", at)
	}
	const where = size/2 + 3
	sealFrame(b[where:where+100], seq, 1)
	if at := findFrame(b, seq, 1); at != where {
		t.Errorf("a frame was found at byte %d, want %d", at, where)
	}
}

func TestShiftedFrameIsDamage(t *testing.T) {
	o, file, content, offsets := oneSegment(t, 6)
	fs := memFS{}
	for _, shift := range []int{-5, -1, 1, 3, 8, 13} {
		at := offsets[3] + 20
		b := append([]byte{}, content[:at]...)
		if shift > 0 {
			b = append(append(b, make([]byte, shift)...), content[at:]...)
		} else {
			b = append(b, content[at-int64(shift):]...)
		}
		fs[segmentName(1)] = &memFile{b: b}
		o.FS = fs
		wantCorruptAt(t, o, file, offsets[3])
	}
}
