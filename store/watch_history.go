package store

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/tree"
)

// watchEvents is the field of etcdserverpb.WatchResponse that has the events.
const watchEvents protowire.Number = 11

// pastEvent is an event of a watcher that is behind: which records it is made of.
type pastEvent struct {
	entry     *entry
	main      int64
	prev      Revision // of the record before; zero if there was none, or it is not wanted
	sub       int32
	size      int32 // of its record
	prevSize  int32
	tombstone bool
}

// pastEvent describes a change; false if its record is gone, because the same
// transaction changed the key again and a compaction came after. mem.mu is held for reading.
func (c *change) pastEvent(prev bool) (p pastEvent, ok bool) {
	r := c.entry.find(c.main, c.sub)
	if r == nil {
		return p, false
	}
	p = pastEvent{entry: c.entry, main: c.main, sub: c.sub, size: r.size, tombstone: r.tombstone()}
	if prev {
		if before := c.entry.liveAt(c.main - 1); before != nil {
			p.prev, p.prevSize = before.rev(), before.size
		}
	}
	return p, true
}

// encodedSize is the size of the event as an encoded mvccpb.Event.
func (p *pastEvent) encodedSize() int {
	n := changeSize(p.entry.key, p.main, p.tombstone, int(p.size))
	if p.prev.Main != 0 {
		n += recordSize(eventPrev, int(p.prevSize))
	}
	return n
}

// Release gives the memory of Framed back. It may be called once, when nobody reads it any more.
func (m *WatchMessage) Release() {
	if m.chunk != nil {
		m.chunk.release()
		m.chunk, m.Framed = nil, nil
	}
}

// encodePast encodes events in one piece of memory, as a response has them, for a stretch of
// history. Their records must be pinned.
func (s *Store) encodePast(past []pastEvent, c *historyChunk) error {
	size := 0
	for i := range past {
		size += recordSize(watchEvents, past[i].encodedSize())
	}
	c.framed = c.buffer(size)
	f := newFiller(c.framed)
	defer f.free()
	end := c.framed[:0]
	for i := range past {
		end = past[i].append(f, end)
	}
	return f.fill(s)
}

// append appends all of the event but its records, for which it notes the places.
func (p *pastEvent) append(f *filler, b []byte) []byte {
	b = protowire.AppendTag(b, watchEvents, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(p.encodedSize()))
	if p.tombstone {
		b = appendTombstone(b, p.entry.key, p.main)
	} else {
		b = f.addRecord(b, eventKV, p.main, p.sub, p.size)
	}
	if p.prev.Main != 0 {
		b = f.addRecord(b, eventPrev, p.prev.Main, int32(p.prev.Sub), p.prevSize)
	}
	return b
}

// addRecord appends a record, which is filled in later, as a field to b, the start of
// the filler's first buffer.
func (f *filler) addRecord(b []byte, num protowire.Number, main int64, sub, size int32) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	f.places = append(f.places, place{main: main, sub: sub, size: size, offset: uint32(len(b))})
	return b[:len(b)+int(size)]
}

// List returns the message's events, also those from the history, which keep its memory.
func (m *WatchMessage) List() []*Event {
	events := m.Events
	for b := m.Framed; len(b) > 0; {
		_, _, n := protowire.ConsumeTag(b)
		encoded, k := protowire.ConsumeBytes(b[n:])
		b = b[n+k:]
		events = append(events, pastEventOf(encoded, m.PrevKV))
	}
	return events
}

// pastEventOf is the inverse of Event.Encoded, for what was encoded here.
func pastEventOf(encoded []byte, prev bool) *Event {
	e := new(Event)
	slot := 0
	if prev {
		slot = 1
	}
	e.encoded[slot].Store(&encoded)
	for b := encoded; len(b) > 0; {
		num, _, n := protowire.ConsumeTag(b)
		b = b[n:]
		switch num {
		case eventType:
			_, n = protowire.ConsumeVarint(b)
			e.delete = true
		case eventPrev:
			e.prev, n = protowire.ConsumeBytes(b)
		default:
			e.kv, n = protowire.ConsumeBytes(b)
		}
		b = b[n:]
	}
	kv, _ := tree.DecodeKV(e.kv) // a record that was decoded before
	e.key, e.main = string(kv.Key), kv.Mod
	if e.delete {
		e.kv = nil // as in an event that is not from the history
	}
	return e
}
