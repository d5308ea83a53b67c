package etcdapi

import "github.com/tarn-kv/tarn/store"

// wake sees to it that a sender looks for something to send. It does not block
// and takes no lock: the store calls it.
func (w *watchStream) wake() {
	if w.signals.Add(1) != 1 {
		return
	}
	select {
	case w.s.senders <- w:
	default: // all are taken, perhaps by clients that do not read
		go w.send()
	}
}

// keptSenders is the number of goroutines that wait for streams with something to send. The stack
// of a new one has to grow each time, which costs as much as the sending.
const keptSenders = 16

// startSenders starts them; they end with the server.
func (s *Server) startSenders() {
	for range keptSenders {
		s.serving.Go(func() {
			for {
				select {
				case w := <-s.senders:
					w.send()
				case <-s.stop:
					return
				}
			}
		})
	}
}

// send sends what there is and ends, so that an idle stream has no goroutine for
// it. Only one runs at a time: it ends in the same step in which it finds that no
// signal came while it worked. When the stream has ended it never takes that
// step, so that none is started again.
func (w *watchStream) send() {
	for {
		n := w.signals.Load()
		if err := w.drain(); err != nil {
			w.fail(err)
			w.abandon()
			return
		}
		if w.isEnded() {
			w.events.Close()
			return
		}
		if w.signals.CompareAndSwap(n, 0) {
			return
		}
	}
}

// drain sends until there is nothing more, or the stream has ended.
func (w *watchStream) drain() error {
	for !w.isEnded() {
		m, ok, err := w.events.Next()
		if err != nil {
			return err
		}
		// Answers that are due go first: none of those creates is behind m.
		if err := w.sendReplies(); err != nil {
			return err
		}
		if !ok {
			return nil
		}
		if err := w.sendMessage(m); err != nil {
			return err
		}
	}
	return nil
}

// abandon is called by a sender that can not go on. The handler returns because
// of its error, finds the sender's signal, and leaves the closing to it.
func (w *watchStream) abandon() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.events.Close()
}

func (w *watchStream) isEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// sendReplies sends the replies that no unsent answer to a create is before.
func (w *watchStream) sendReplies() error {
	for {
		w.mu.Lock()
		if len(w.replies) == 0 || w.replies[0].after > w.createdSent {
			w.mu.Unlock()
			return nil
		}
		r := w.replies[0]
		w.replies[0] = watchReply{}
		w.replies = w.replies[1:]
		w.mu.Unlock()
		if err := w.grpc.SendMsg(r.message); err != nil {
			return err
		}
	}
}

func (w *watchStream) sendMessage(m store.WatchMessage) error {
	err := w.encodeAndSend(m)
	w.events.Sent(m)
	if err != nil {
		return err
	}
	switch m.Kind {
	case store.WatchCreated:
		w.createdSent++
	case store.WatchProgress:
		w.logProgress(m)
	case store.WatchCanceled:
		w.forgetFragment(m.ID)
	}
	return nil
}

// encodeAndSend sends a message in one response, or in parts if it is large and
// its watch wants that.
func (w *watchStream) encodeAndSend(m store.WatchMessage) error {
	h := watchHead{
		head:     w.s.head(m.Revision),
		id:       m.ID,
		created:  m.Kind == store.WatchCreated,
		canceled: m.Kind == store.WatchCanceled,
		compact:  m.CompactRevision,
	}
	if m.Kind != store.WatchEvents {
		return w.grpc.SendMsg(h.encode())
	}
	parts := w.wantsFragments(m.ID)
	switch {
	case m.Framed != nil && parts:
		return w.sendFramedFragments(h, m)
	case m.Framed != nil:
		return w.grpc.SendMsg(h.around(m.Framed, m.Release))
	case parts && len(m.Events) > 1:
		return w.sendFragments(h, m)
	}
	return w.grpc.SendMsg(h.encodeEvents(m.Events, m.PrevKV))
}
