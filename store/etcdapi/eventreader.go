package etcdapi

import (
	"context"

	"github.com/tarn-kv/tarn/store"
)

// eventReader reads a stream of watches within a handler, by whose goroutine
// alone it is used. It must be closed.
type eventReader struct {
	s      *Server
	events *store.WatchStream
	ready  chan struct{}
}

func (s *Server) newEventReader() *eventReader {
	r := &eventReader{s: s, ready: make(chan struct{}, 1)}
	r.events = s.store.NewWatchStream(func() {
		select {
		case r.ready <- struct{}{}:
		default:
		}
	})
	return r
}

func (r *eventReader) watch(req store.WatchRequest) error {
	_, err := r.events.Create(req)
	return err
}

// next waits for the next message; all its events are in Events. The context's error and errStopped are
// returned when the caller is gone or the server stops before it comes.
func (r *eventReader) next(ctx context.Context) (store.WatchMessage, error) {
	for {
		if err := ctx.Err(); err != nil {
			return store.WatchMessage{}, err
		}
		if r.s.stopping() {
			return store.WatchMessage{}, errStopped
		}
		m, ok, err := r.events.Next()
		if err != nil {
			return m, err
		}
		if ok {
			r.events.Sent(m)
			m.Events, m.Framed = m.List(), nil
			return m, nil
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
		case <-r.s.stop:
		}
	}
}

func (r *eventReader) close() { r.events.Close() }
