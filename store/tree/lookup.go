package tree

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// lookup finds records of bucket key by their revision, in the mapped pages themselves.
// A list searches once for each key, and a search with bbolt's cursor costs several
// times as much: a call for each page and for each comparison of bytes.
//
// It is valid inside the read transaction that it was made in, which keeps the
// mapping where it is. What a page says of places and lengths is checked by the
// bounds of slices, so a damaged page makes it panic.
type lookup struct {
	pages    []byte
	pageSize uint64
	root     uint64

	// The leaf that was looked at last, the branch above it, and which keys
	// they can have.
	leaf, branch position
}

// position is a page, with an element of it, on the way to a record.
type position struct {
	page      []byte
	at        int
	low, high recordKey // low ≤ key < high
}

func (p *position) has(key recordKey) bool {
	return p.page != nil && !key.less(p.low) && key.less(p.high)
}

// recordKey is the revision in a record's key: as numbers it sorts as the bytes do.
type recordKey struct{ main, sub uint64 }

var lastKey = recordKey{1<<64 - 1, 1<<64 - 1}

func (k recordKey) less(o recordKey) bool {
	return k.main < o.main || k.main == o.main && k.sub < o.sub
}

// newLookup returns false for a bucket so small that it has no page of its own.
func newLookup(h *handle, tx *bolt.Tx) (lookup, bool) {
	root := uint64(tx.Bucket(bucketKey).RootPage())
	info := h.db.Info()
	base := *(*unsafe.Pointer)(unsafe.Pointer(&info.Data)) // not memory of the garbage collector
	return lookup{
		pages:    unsafe.Slice((*byte)(base), tx.Size()),
		pageSize: uint64(info.PageSize),
		root:     root,
	}, root != 0
}

// get returns the value of a put.
func (l *lookup) get(rev Revision) (value []byte, ok bool) {
	want := recordKey{uint64(rev.Main), uint64(rev.Sub)}
	if !l.leaf.has(want) {
		l.descend(want)
	}
	if l.leaf.search(want); l.leaf.at < 0 {
		return nil, false
	}
	b := l.leaf.element(0)
	pos, keyLen, valueLen := u32(b[4:]), u32(b[8:]), u32(b[12:])
	if keyLen != revisionLen || keyAt(b, pos, keyLen) != want {
		return nil, false
	}
	return b[pos+keyLen:][:valueLen:valueLen], true
}

// descend makes the leaf that want belongs to the current one.
func (l *lookup) descend(want recordKey) {
	p := l.branch
	if !p.has(want) {
		p = position{page: l.page(l.root), at: -1, high: lastKey}
	}
	for range maxDepth {
		if p.page[8] == flagLeaf {
			l.leaf = p
			return
		}
		l.branch = p
		l.branch.search(want)
		p = l.branch.below(l)
	}
	panic(fmt.Sprintf("the tree is more than %d levels deep", maxDepth))
}

// below returns the page that the current element of a branch points at.
func (p *position) below(l *lookup) position {
	p.at = max(p.at, 0)
	b := p.element(0)
	child := position{page: l.page(binary.NativeEndian.Uint64(b[8:])), at: -1, low: p.low, high: p.high}
	if p.at > 0 {
		child.low = branchKey(b)
	}
	if p.at+1 < elementCount(p.page) {
		child.high = branchKey(p.element(1))
	}
	return child
}

// element returns the page from the current element, or one after it, on.
func (p *position) element(ahead int) []byte {
	return p.page[pageHeaderLen+(p.at+ahead)*elementLen:]
}

// page returns a branch or leaf page that has at least one element.
func (l *lookup) page(id uint64) []byte {
	if id < 2 || id >= uint64(len(l.pages))/l.pageSize {
		panic(fmt.Sprintf("page %d of %d is pointed at", id, uint64(len(l.pages))/l.pageSize))
	}
	p := l.pages[id*l.pageSize:]
	if got := binary.NativeEndian.Uint64(p); got != id {
		panic(fmt.Sprintf("page %d says that it is page %d", id, got))
	}
	if flags := binary.NativeEndian.Uint16(p[8:]); flags != flagBranch && flags != flagLeaf {
		panic(fmt.Sprintf("page %d has type %#x", id, flags))
	}
	overflow := uint64(binary.NativeEndian.Uint32(p[12:]))
	p = p[:(overflow+1)*l.pageSize]
	if n := elementCount(p); n == 0 && p[8] == flagBranch || n*elementLen > len(p)-pageHeaderLen {
		panic(fmt.Sprintf("page %d can not have %d elements", id, n))
	}
	return p
}

func elementCount(page []byte) int { return int(binary.NativeEndian.Uint16(page[10:])) }

func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// search sets at to the last element whose key is at most want, or −1. Each key that
// it looks at is a miss of the cache, so it begins with a guess and goes on from
// there in steps that double.
func (p *position) search(want recordKey) {
	key := branchKey
	if p.page[8] == flagLeaf {
		key = leafKey
	}
	body := p.page[pageHeaderLen:]
	above := func(i int) bool { return want.less(key(body[i*elementLen:])) }

	lo, hi := 0, elementCount(p.page) // all before lo are at most want, all from hi on above it
	for at, step := p.guess(want, hi), 1; lo <= at && at < hi; step *= 2 {
		if above(at) {
			hi = at
			at -= step
		} else {
			lo = at + 1
			at += step
		}
	}
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); above(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	p.at = lo - 1
}

// guess returns where want may be among n elements: after the one found last, since most
// searches go on where the one before ended, or in a fresh page where it would be if
// revisions were spread evenly.
func (p *position) guess(want recordKey, n int) int {
	if p.at >= 0 || p.high == lastKey {
		return min(p.at+1, n-1)
	}
	return int(float64(want.main-p.low.main) / float64(p.high.main-p.low.main+1) * float64(n))
}

func branchKey(b []byte) recordKey { return keyAt(b, u32(b), u32(b[4:])) }

func leafKey(b []byte) recordKey { return keyAt(b, u32(b[4:]), u32(b[8:])) }

// keyAt reads a key of an element.
func keyAt(b []byte, pos, keyLen uint32) recordKey {
	k := b[pos:][:keyLen]
	if keyLen != revisionLen && keyLen != tombstoneLen {
		panic(badKey(k))
	}
	return recordKey{binary.BigEndian.Uint64(k), binary.BigEndian.Uint64(k[9:])}
}
