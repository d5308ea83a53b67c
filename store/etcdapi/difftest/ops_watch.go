package difftest

import (
	"context"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"
)

const (
	// recvTimeout is how long an expected message may take.
	recvTimeout = 15 * time.Second
	// quietTime is how long a stream must stay silent to count as silent. Both
	// servers answer within a few milliseconds, so a late message is possible
	// but cannot make a correct server fail.
	quietTime = 250 * time.Millisecond
	// askAgain is the pause between progress requests that may be dropped.
	askAgain = 150 * time.Millisecond
)

// watch is one open watch stream, read by a goroutine of its own.
type watch struct {
	stream pb.Watch_WatchClient
	cancel context.CancelFunc
	in     chan *pb.WatchResponse // closed at the end of the stream
	err    error                  // why it ended; valid once in is closed
}

func (s *Session) open(ctx context.Context) (*watch, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stream, err := pb.NewWatchClient(s.Server.conn).Watch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watch{stream: stream, cancel: cancel, in: make(chan *pb.WatchResponse, 100_000)}
	go func() {
		defer close(w.in)
		for {
			m, err := stream.Recv()
			if err != nil {
				w.err = err
				return
			}
			w.in <- m
		}
	}()
	return w, nil
}

// next returns the next message, or false when none came in time or the stream ended.
func (w *watch) next(wait time.Duration) (*pb.WatchResponse, bool) {
	select {
	case m, ok := <-w.in:
		return m, ok
	case <-time.After(wait):
		return nil, false
	}
}

// Open opens watch stream w.
func Open(w string, opts ...CallOption) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		ctx, _ = s.options(ctx, opts)
		st, err := s.open(metadata.AppendToOutgoingContext(ctx, "hasleader", "true"))
		if err == nil {
			s.watches[w] = st
		}
		f.status(s, err)
		return f
	}
}

// Create, Cancel and Progress make the requests of a watch stream.
func Create(r *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}
}

func Cancel(id int64) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
}

func Progress() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
}

// Ask sends requests on stream w and compares the next n messages.
func Ask(w string, n int, reqs ...*pb.WatchRequest) Op {
	return func(_ context.Context, s *Session) Facts {
		f := s.send(w, reqs)
		for i, m := range s.receive(&f, w, n) {
			f.message(s, fmt.Sprintf("msg[%d]", i), m)
		}
		return f
	}
}

// Recv compares the next n messages of stream w.
func Recv(w string, n int) Op { return Ask(w, n) }

// RecvByID is Recv for a stream with several watches: the messages are sorted
// by watch id first, because their order between ids is free (WCH-28).
func RecvByID(w string, n int) Op {
	return func(_ context.Context, s *Session) Facts {
		var f Facts
		got := s.receive(&f, w, n)
		slices.SortStableFunc(got, func(a, b *pb.WatchResponse) int { return int(a.WatchId - b.WatchId) })
		for i, m := range got {
			f.message(s, fmt.Sprintf("msg[%d]", i), m)
		}
		return f
	}
}

func (s *Session) send(w string, reqs []*pb.WatchRequest) Facts {
	var f Facts
	for _, r := range reqs {
		if err := s.watches[w].stream.Send(r); err != nil {
			f.add("!send", err)
		}
	}
	return f
}

func (s *Session) receive(f *Facts, w string, n int) []*pb.WatchResponse {
	var got []*pb.WatchResponse
	for range n {
		m, ok := s.watches[w].next(recvTimeout)
		if !ok {
			f.add("!missing", fmt.Sprintf("%d of %d messages", n-len(got), n))
			break
		}
		got = append(got, m)
	}
	return got
}

// Quiet compares that nothing (or the same) comes on stream w for a while after
// sending reqs.
func Quiet(w string, reqs ...*pb.WatchRequest) Op {
	return func(_ context.Context, s *Session) Facts {
		f := s.send(w, reqs)
		for i := 0; ; i++ {
			m, ok := s.watches[w].next(quietTime)
			if !ok {
				return f
			}
			f.message(s, fmt.Sprintf("unasked[%d]", i), m)
		}
	}
}

// Synced asks stream w for progress until it is answered, as kube-apiserver
// does, and compares the answer. No events may be outstanding.
func Synced(w string) Op {
	return func(_ context.Context, s *Session) Facts {
		f := s.send(w, []*pb.WatchRequest{Progress()})
		for asked, end := 1, time.Now().Add(recvTimeout); time.Now().Before(end); asked++ {
			if m, ok := s.watches[w].next(askAgain); ok {
				f.message(s, "progress", m)
				s.drop(w, m, asked)
				return f
			}
			f = append(f, s.send(w, []*pb.WatchRequest{Progress()})...)
		}
		f.add("!missing", "progress")
		return f
	}
}

// drop discards further answers equal to m: a slow server may have answered
// more than one of the asked requests.
func (s *Session) drop(w string, m *pb.WatchResponse, asked int) {
	for range asked - 1 {
		again, ok := s.watches[w].next(askAgain)
		if !ok || again.WatchId != m.WatchId || len(again.Events) > 0 {
			return
		}
	}
}

// Events reads stream w until n events came and compares them without the
// borders between messages, which depend on timing during catch-up. It also
// notes a revision split over two messages and a falling revision (TOP-5).
func Events(w string, n int) Op {
	return func(_ context.Context, s *Session) Facts {
		var f Facts
		var last int64
		for got := 0; got < n; {
			m, ok := s.watches[w].next(recvTimeout)
			if !ok {
				f.add("!missing", fmt.Sprintf("%d of %d events", n-got, n))
				break
			}
			if len(m.Events) == 0 {
				f.message(s, fmt.Sprintf("before[%d]", got), m)
				if m.Canceled {
					break
				}
				continue
			}
			if first := m.Events[0].Kv.ModRevision; first <= last {
				f.add(fmt.Sprintf("!order[%d]", got), fmt.Sprintf("message starts at revision %d after %d", first, last))
			}
			for _, e := range m.Events {
				f.message(s, fmt.Sprintf("event[%d]", got), e)
				last = e.Kv.ModRevision
				got++
			}
		}
		return f
	}
}

// CloseSend half-closes stream w.
func CloseSend(w string) Op {
	return func(_ context.Context, s *Session) Facts {
		var f Facts
		f.status(s, s.watches[w].stream.CloseSend())
		return f
	}
}

// HangUp cancels stream w and compares how it ended.
func HangUp(w string) Op {
	return func(_ context.Context, s *Session) Facts {
		var f Facts
		st := s.watches[w]
		delete(s.watches, w)
		st.cancel()
		for m := range st.in {
			f.message(s, "unasked", m)
		}
		f.status(s, st.err)
		return f
	}
}
