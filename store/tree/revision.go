package tree

import (
	"cmp"
	"encoding/binary"
)

// Revision names one change: Main is the transaction's revision (≥ 1), Sub the
// position among that transaction's changes, from 0.
type Revision struct {
	Main int64
	Sub  int64
}

// Compare orders revisions by Main, then by Sub.
func (r Revision) Compare(o Revision) int {
	if c := cmp.Compare(r.Main, o.Main); c != 0 {
		return c
	}
	return cmp.Compare(r.Sub, o.Sub)
}

const (
	revisionLen  = 17 // 8 bytes main, '_', 8 bytes sub
	tombstoneLen = 18 // the same and a mark
	tombstone    = 't'
)

// AppendKey appends the key of a record in bucket "key": main and sub in big
// endian around an underscore, and a final 't' for a tombstone, as in etcd.
func (r Revision) AppendKey(dst []byte, dead bool) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Main))
	dst = append(dst, '_')
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Sub))
	if dead {
		dst = append(dst, tombstone)
	}
	return dst
}

// ParseKey reads what AppendKey wrote. ok is false if k has another form.
func ParseKey(k []byte) (r Revision, dead, ok bool) {
	if len(k) != revisionLen && len(k) != tombstoneLen || k[8] != '_' {
		return Revision{}, false, false
	}
	dead = len(k) == tombstoneLen
	if dead && k[revisionLen] != tombstone {
		return Revision{}, false, false
	}
	r.Main = int64(binary.BigEndian.Uint64(k))
	r.Sub = int64(binary.BigEndian.Uint64(k[9:]))
	return r, dead, true
}
