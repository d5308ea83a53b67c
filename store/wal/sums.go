package wal

import (
	"hash/crc32"
	"sync"
)

// sumStep is the distance in bytes of the places whose checksum is kept.
const sumStep = 256

// sums gives the checksum of any part of b in a time that hardly depends on the
// part's length. So looking for a frame at every byte takes a time that
// grows with the length of b, and not with its square, whatever b holds.
//
// A CRC's register is linear: after b[:to] it is what the part b[from:to] makes of an
// empty one, combined with the register after b[:from] moved on by zeros.
type sums struct {
	b     []byte
	marks []uint32 // the register after each sumStep bytes, begun empty
}

func newSums(b []byte) *sums {
	s := &sums{b: b, marks: make([]uint32, 1, 2+len(b)/sumStep)}
	for at := 0; at+sumStep <= len(b); at += sumStep {
		s.marks = append(s.marks, register(s.marks[len(s.marks)-1], b[at:at+sumStep]))
	}
	return s
}

// update is crc32.Update(crc, castagnoli, b[from:to]).
func (s *sums) update(crc uint32, from, to int) uint32 {
	return ^(s.after(to) ^ zeros(s.after(from)^^crc, to-from))
}

// after is the register after b[:n].
func (s *sums) after(n int) uint32 {
	mark := n / sumStep
	return register(s.marks[mark], s.b[mark*sumStep:n])
}

// register is the CRC's register after b, without the inversions before and after.
func register(r uint32, b []byte) uint32 { return ^crc32.Update(^r, castagnoli, b) }

// zeroTable is what a number of zeros make of each byte of the register.
type zeroTable [4][256]uint32

func (t *zeroTable) move(r uint32) uint32 {
	return t[0][byte(r)] ^ t[1][byte(r>>8)] ^ t[2][byte(r>>16)] ^ t[3][byte(r>>24)]
}

// zeroTables has a table for each power of two up to 1<<31 zeros.
var zeroTables = sync.OnceValue(func() *[32]zeroTable {
	all := new([32]zeroTable)
	for k := range all {
		for i := range all[k] {
			for v := range all[k][i] {
				r := uint32(v) << (8 * i)
				if k == 0 {
					all[k][i][v] = register(r, []byte{0})
				} else {
					all[k][i][v] = all[k-1].move(all[k-1].move(r))
				}
			}
		}
	}
	return all
})

// zeros is the register r after n zeros.
func zeros(r uint32, n int) uint32 {
	tables := zeroTables()
	for k := 0; n > 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			r = tables[k].move(r)
		}
	}
	return r
}
