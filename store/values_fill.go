package store

import (
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// filler writes the records of many items into buffers. It reads them in the order
// of their revisions, which is that of the tail and of the tree's pages: in the order of
// keys each record would be a search of its own, in pages that are not in the cache.
type filler struct {
	bufs  [][]byte
	items []Item
	slots []slot
	order revisionOrder
}

// slot is where a record belongs.
type slot struct{ buf, offset uint32 }

var fillers = sync.Pool{New: func() any { return new(filler) }}

// FillValues is AppendValues into buffers, one after another: their lengths add up to
// FramedSize, and no item's part is split between two of them.
func (s *Store) FillValues(bufs [][]byte, items []Item, num protowire.Number) error {
	f := fillers.Get().(*filler)
	f.bufs, f.items = bufs, items
	defer func() {
		f.bufs, f.items = nil, nil
		fillers.Put(f)
	}()
	f.frame(num)
	f.order.sort(items)
	if err := f.fromTree(s, f.fromTail(&s.mem)); err != nil {
		return s.readFailed(err)
	}
	return nil
}

// frame writes the tag and the length of each record, and notes the place after them.
func (f *filler) frame(num protowire.Number) {
	f.slots = f.slots[:0]
	buf, rest := 0, f.bufs[0]
	for i := range f.items {
		for len(rest) == 0 {
			buf++
			rest = f.bufs[buf]
		}
		head := protowire.AppendTag(rest[:0], num, protowire.BytesType)
		head = protowire.AppendVarint(head, uint64(f.items[i].Size))
		f.slots = append(f.slots, slot{uint32(buf), uint32(len(f.bufs[buf]) - len(rest) + len(head))})
		rest = rest[len(head)+f.items[i].Size:]
	}
}

// value returns the place of an item's record.
func (f *filler) value(i int) []byte {
	at := f.slots[i]
	return f.bufs[at.buf][at.offset:][:f.items[i].Size]
}

// fromTail fills in what is in the tail, and returns the positions of the others, by
// rising revision.
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
	for n > 0 && f.items[f.order.item(order[n-1])].Rev.Main >= oldest {
		n--
	}
	missing, newer := order[:n], order[n:]
	for len(newer) > 0 {
		step := newer[:min(perLock, len(newer))]
		m.mu.RLock()
		for _, key := range step {
			i := f.order.item(key)
			if v, ok := m.tailValue(f.items[i].Rev.Main, int32(f.items[i].Rev.Sub)); ok {
				copy(f.value(i), v)
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
	rev := func(n int) Revision { return f.items[f.order.item(missing[n])].Rev }
	return v.Each(len(missing), rev, func(n int, stored []byte) error {
		i := f.order.item(missing[n])
		it := &f.items[i]
		switch {
		case stored == nil:
			return damage(fmt.Errorf("record %d/%d of key %q is not in the tree", it.Rev.Main, it.Rev.Sub, it.Key))
		case len(stored) != it.Size:
			return damage(fmt.Errorf("record %d/%d of key %q has %d bytes, the index says %d",
				it.Rev.Main, it.Rev.Sub, it.Key, len(stored), it.Size))
		}
		copy(f.value(i), stored)
		return nil
	})
}
