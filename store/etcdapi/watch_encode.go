package etcdapi

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store"
)

// Field numbers of WatchResponse beside the header.
const (
	watchID           protowire.Number = 2
	watchCreated      protowire.Number = 3
	watchCanceled     protowire.Number = 4
	watchCompactRev   protowire.Number = 5
	watchCancelReason protowire.Number = 6
	watchFragment     protowire.Number = 7
	watchEvents       protowire.Number = 11
)

const (
	// watchHeadRoom is enough for a WatchResponse without reason and events.
	watchHeadRoom = headRoom + 2*(1+10) + 3*2 + 6
	// watchEventRoom is enough for the tag and the length of an event.
	watchEventRoom = 1 + 5
	// copyEvent is the size of an encoded event up to which it is copied into a
	// response: a buffer of its own would cost as much memory.
	copyEvent = 256
)

// watchHead is a WatchResponse without its events.
type watchHead struct {
	head              head
	id                int64
	created, canceled bool
	compact           int64
	reason            string
	fragment          bool
}

func (h *watchHead) append(dst []byte) []byte {
	dst = h.head.append(dst)
	dst = appendUint(dst, watchID, uint64(h.id))
	dst = appendBool(dst, watchCreated, h.created)
	dst = appendBool(dst, watchCanceled, h.canceled)
	dst = appendUint(dst, watchCompactRev, uint64(h.compact))
	if h.reason != "" {
		dst = protowire.AppendTag(dst, watchCancelReason, protowire.BytesType)
		dst = protowire.AppendString(dst, h.reason)
	}
	return appendBool(dst, watchFragment, h.fragment)
}

// encode makes a response without events.
func (h *watchHead) encode() raw {
	return raw{mem.SliceBuffer(h.append(make([]byte, 0, watchHeadRoom+len(h.reason))))}
}

// around makes a response with events that are encoded as it has them. done is called
// when gRPC has sent them.
func (h *watchHead) around(events []byte, done func()) raw {
	return raw{
		mem.SliceBuffer(h.append(make([]byte, 0, watchHeadRoom))),
		mem.NewBuffer(&events, whenFreed(done)), // one too small for a pool is left to the garbage collector
	}
}

// encodeEvents makes a response with events. An event is encoded once for all
// watches: larger ones are put into the response as they are, and small ones
// copied, which costs less than another buffer.
func (h *watchHead) encodeEvents(events []*store.Event, prev bool) raw {
	room, shared := watchHeadRoom, 0
	for _, e := range events {
		n := e.Size(prev)
		room += watchEventRoom
		if n <= copyEvent {
			room += n
		} else {
			shared++
		}
	}
	out := make(mem.BufferSlice, 0, 2*shared+1)
	buf := h.append(make([]byte, 0, room))
	start := 0
	for _, e := range events {
		b := e.Encoded(prev)
		buf = appendPrefix(buf, watchEvents, len(b))
		if len(b) <= copyEvent {
			buf = append(buf, b...)
			continue
		}
		out = append(out, mem.SliceBuffer(buf[start:]), mem.SliceBuffer(b))
		start = len(buf)
	}
	if start < len(buf) {
		out = append(out, mem.SliceBuffer(buf[start:]))
	}
	return raw(out)
}
