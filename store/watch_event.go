package store

import (
	"bytes"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/tree"
)

// Event is one change as a watcher sees it. It holds all it needs, so no compaction can
// take anything from it, and is shared by all watchers: its encoding is made once.
type Event struct {
	key    string
	main   int64
	delete bool
	kv     []byte // encoded KeyValue of a put
	prev   []byte // encoded KeyValue before the revision, nil if there was none

	encoded [2]atomic.Pointer[[]byte] // without and with prev
}

// Fields of mvccpb.Event.
const (
	eventType protowire.Number = 1
	eventKV   protowire.Number = 2
	eventPrev protowire.Number = 3
)

// IsDelete tells a deletion from a put.
func (e *Event) IsDelete() bool { return e.delete }

// Revision returns the revision of the change.
func (e *Event) Revision() int64 { return e.main }

// Size returns the size in bytes of Encoded(prev).
func (e *Event) Size(prev bool) int {
	n := changeSize(e.key, e.main, e.delete, len(e.kv))
	if prev && e.prev != nil {
		n += recordSize(eventPrev, len(e.prev))
	}
	return n
}

// changeSize is the size of an encoded event without the record before: of a deletion, or
// of a put with a record of n bytes.
func changeSize(key string, main int64, deletion bool, n int) int {
	if !deletion {
		return recordSize(eventKV, n)
	}
	return protowire.SizeTag(eventType) + protowire.SizeVarint(1) + recordSize(eventKV, tree.KVSize(len(key), 0, main, 0, 0, 0))
}

func recordSize(num protowire.Number, n int) int {
	return protowire.SizeTag(num) + protowire.SizeBytes(n)
}

// Encoded returns the event as an encoded mvccpb.Event, with the previous record if
// prev is set and there was one. The bytes are shared and must not be changed.
func (e *Event) Encoded(prev bool) []byte {
	slot := &e.encoded[0]
	if prev {
		slot = &e.encoded[1]
	}
	if b := slot.Load(); b != nil {
		return *b
	}
	b := make([]byte, 0, e.Size(prev))
	if e.delete {
		b = appendTombstone(b, e.key, e.main)
	} else {
		b = protowire.AppendTag(b, eventKV, protowire.BytesType)
		b = protowire.AppendBytes(b, e.kv)
	}
	if prev && e.prev != nil {
		b = protowire.AppendTag(b, eventPrev, protowire.BytesType)
		b = protowire.AppendBytes(b, e.prev)
	}
	slot.CompareAndSwap(nil, &b)
	return *slot.Load()
}

// appendTombstone appends what an event says of a deletion beside the record before.
func appendTombstone(b []byte, key string, main int64) []byte {
	b = protowire.AppendTag(b, eventType, protowire.VarintType)
	b = protowire.AppendVarint(b, 1)
	b = protowire.AppendTag(b, eventKV, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(tree.KVSize(len(key), 0, main, 0, 0, 0)))
	return tree.AppendKV(b, []byte(key), 0, main, 0, nil, 0)
}

// eventMaker turns changes into events that may wait long for a client. What is not in the tail is read from the
// tree, in one read transaction that is opened when it is first needed.
type eventMaker struct {
	s    *Store
	view *tree.View
}

// shareFrom is the size in bytes from which on a queued event shares the memory of the batch
// that it was written with. A smaller one gets its own: else one byte that a client does not
// read could hold on to a megabyte that was written beside it.
const shareFrom = 16 << 10

func (m *eventMaker) close() {
	if m.view != nil {
		m.view.Close()
	}
}

// draft is an event whose records are known, but not yet read.
type draft struct {
	*Event
	rev  Revision
	prev Revision // of the record before; zero if there was none
}

// draft describes a change, with what can be had from memory; false if its
// record is gone, because the same transaction changed the key again and a compaction came
// after. mem.mu is held for reading.
func (m *eventMaker) draft(c *change, prev bool) (draft, bool) {
	r := c.entry.find(c.main, c.sub)
	if r == nil {
		return draft{}, false
	}
	d := draft{Event: &Event{key: c.entry.key, main: c.main, delete: r.tombstone()}, rev: r.rev()}
	if !d.delete {
		d.kv = m.tailValue(c.main, c.sub)
	}
	if prev {
		if p := c.entry.liveAt(c.main - 1); p != nil {
			d.prev = p.rev()
			d.Event.prev = m.tailValue(p.main, p.sub)
		}
	}
	return d, true
}

// tailValue returns a record that is in the tail, or nil.
func (m *eventMaker) tailValue(main int64, sub int32) []byte {
	v, _ := m.s.mem.tailValue(main, sub)
	if len(v) < shareFrom {
		return bytes.Clone(v)
	}
	return v
}

// complete reads what is missing from the tree. mem.mu is not held.
func (m *eventMaker) complete(d draft) (*Event, error) {
	var err error
	if !d.delete && d.kv == nil {
		d.kv, err = m.read(d.rev)
	}
	if err == nil && d.prev.Main != 0 && d.Event.prev == nil {
		d.Event.prev, err = m.read(d.prev)
	}
	return d.Event, err
}

func (m *eventMaker) read(rev Revision) ([]byte, error) {
	if m.view == nil {
		m.view = m.s.tree.View()
	}
	if v, ok := m.view.Get(rev); ok {
		return append([]byte(nil), v...), nil
	}
	return m.s.recordValue(rev) // newer than the view, or an error
}
