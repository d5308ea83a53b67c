package etcdapi

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store"
)

func (w *watchStream) wantsFragments(id int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.fragment[id]
	return ok
}

// forgetFragment forgets a canceled watch, unless a new one has its ID by now.
func (w *watchStream) forgetFragment(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if created, ok := w.fragment[id]; ok && created <= w.createdSent {
		delete(w.fragment, id)
	}
}

// sendFragments sends events in as many responses as it takes to stay below what
// clients can receive, all but the last marked as parts (WCH-27).
func (w *watchStream) sendFragments(h watchHead, m store.WatchMessage) error {
	size, limit := w.fragmentSizes(&h)
	left := m.Events
	for len(left) > 0 {
		n := fragment(left, func(e *store.Event) int { return e.Size(m.PrevKV) }, size, limit)
		h.fragment = n < len(left)
		if err := w.grpc.SendMsg(h.encodeEvents(left[:n], m.PrevKV)); err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

// sendFramedFragments is sendFragments for events that are encoded already.
func (w *watchStream) sendFramedFragments(h watchHead, m store.WatchMessage) error {
	size, limit := w.fragmentSizes(&h)
	framed := m.Framed
	if size+len(framed) < limit {
		return w.grpc.SendMsg(h.around(framed, m.Release))
	}
	for len(framed) > 0 {
		n := framedFragment(framed, size, limit)
		h.fragment = n < len(framed)
		if err := w.grpc.SendMsg(h.around(framed[:n:n], func() {})); err != nil {
			return err
		}
		framed = framed[n:]
	}
	return nil
}

// fragmentSizes returns the size of a part without events, and the one that it must
// stay below.
func (w *watchStream) fragmentSizes(h *watchHead) (size, limit int) {
	part := *h
	part.fragment = true
	return len(part.append(nil)), w.s.cfg.MaxRequestBytes + recvOverhead
}

// framedFragment returns how many bytes of framed events, at least one event, make a
// response that is smaller than limit.
func framedFragment(framed []byte, size, limit int) int {
	at := 0
	for at < len(framed) {
		n := protowire.ConsumeFieldValue(watchEvents, protowire.BytesType, framed[at+protowire.SizeTag(watchEvents):])
		n += protowire.SizeTag(watchEvents)
		if at > 0 && size+at+n >= limit {
			break
		}
		at += n
	}
	return at
}

// fragment returns how many of the events, at least one, make a response that is
// smaller than limit. size is that of the response without events.
func fragment[E any](events []E, sizeOf func(E) int, size, limit int) int {
	for n, e := range events {
		size += protowire.SizeTag(watchEvents) + protowire.SizeBytes(sizeOf(e))
		if n > 0 && size >= limit {
			return n
		}
	}
	return len(events)
}
