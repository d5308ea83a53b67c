package store

import (
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// filler copies many records into buffers. It reads them in the order of their
// revisions, which is that of the tail and of the tree's pages: in another order each
// record would be a search of its own, in pages that are not in the cache.
type filler struct {
	bufs   [][]byte
	places []place
	order  revisionOrder
}

// place is where a record belongs.
type place struct {
	main        int64
	sub, size   int32
	buf, offset uint32
}

var fillers = sync.Pool{New: func() any { return new(filler) }}

func newFiller(bufs ...[]byte) *filler {
	f := fillers.Get().(*filler)
	f.bufs, f.places = bufs, f.places[:0]
	return f
}

func (f *filler) free() {
	f.bufs = nil
	fillers.Put(f)
}

// FillValues is AppendValues into buffers, one after another: their lengths add up to
// FramedSize, and no item's part is split between two of them.
func (s *Store) FillValues(bufs [][]byte, items []Item, num protowire.Number) error {
	f := newFiller(bufs...)
	defer f.free()
	f.frame(items, num)
	return f.fill(s)
}

// frame writes the tag and the length of each item's record, and notes the place after them.
func (f *filler) frame(items []Item, num protowire.Number) {
	buf, rest := 0, f.bufs[0]
	for i := range items {
		for len(rest) == 0 {
			buf++
			rest = f.bufs[buf]
		}
		it := &items[i]
		head := protowire.AppendTag(rest[:0], num, protowire.BytesType)
		head = protowire.AppendVarint(head, uint64(it.Size))
		f.places = append(f.places, place{
			main: it.Rev.Main, sub: int32(it.Rev.Sub), size: int32(it.Size),
			buf: uint32(buf), offset: uint32(len(f.bufs[buf]) - len(rest) + len(head)),
		})
		rest = rest[len(head)+it.Size:]
	}
}

// fill copies the records to their places. They must be pinned. An error stops the store.
func (f *filler) fill(s *Store) error {
	f.order.sort(f.places)
	if err := f.fromTree(s, f.fromTail(&s.mem)); err != nil {
		return s.readFailed(err)
	}
	return nil
}

// value returns the bytes of a place.
func (f *filler) value(p *place) []byte { return f.bufs[p.buf][p.offset:][:p.size] }

// fromTail fills in what is in the tail, and returns the others, by rising revision.
func (f *filler) fromTail(m *memory) (missing []uint64) {
	const perLock = 256
	order := f.order.keys
	oldest := int64(math.MaxInt64)
	m.mu.RLock()
	if m.tail.len() > 0 {
		oldest = m.tail.at(0).main
	}
	m.mu.RUnlock()
	n := len(order)
	for n > 0 && f.places[f.order.position(order[n-1])].main >= oldest {
		n--
	}
	missing, newer := order[:n], order[n:]
	for len(newer) > 0 {
		step := newer[:min(perLock, len(newer))]
		m.mu.RLock()
		at := -1
		for _, key := range step {
			p := &f.places[f.order.position(key)]
			if v, ok := m.tailValueNear(&at, p.main, p.sub); ok {
				copy(f.value(p), v)
			} else { // a checkpoint has moved it to the tree since
				missing = append(missing, key)
			}
		}
		m.mu.RUnlock()
		newer = newer[len(step):]
	}
	return missing
}

func (f *filler) fromTree(s *Store, missing []uint64) error {
	if len(missing) == 0 {
		return nil
	}
	v := s.tree.View()
	defer v.Close()
	rev := func(i int) Revision {
		p := &f.places[f.order.position(missing[i])]
		return Revision{Main: p.main, Sub: int64(p.sub)}
	}
	return v.Each(len(missing), rev, func(i int, stored []byte) error {
		p := &f.places[f.order.position(missing[i])]
		switch {
		case stored == nil:
			return damage(fmt.Errorf("record %d/%d, which the index knows, is not in the tree", p.main, p.sub))
		case len(stored) != int(p.size):
			return damage(fmt.Errorf("record %d/%d has %d bytes, the index says %d", p.main, p.sub, len(stored), p.size))
		}
		copy(f.value(p), stored)
		return nil
	})
}
