package etcdapi

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/tarn-kv/tarn/store"
)

// watchService serves etcdserverpb.Watch.
type watchService struct {
	pb.UnimplementedWatchServer
	s *Server
}

func (s *Server) registerWatch(r grpc.ServiceRegistrar) {
	pb.RegisterWatchServer(r, watchService{s: s})
}

// watchStream is one Watch call: the client's requests come in on a goroutine of
// their own, answers and events leave through send (watch_send.go), and the
// handler waits for the end. (With the requests taken by the handler itself an
// idle stream would have a goroutine less and need as much memory: the one left
// has the larger stack.)
type watchStream struct {
	s      *Server
	grpc   grpc.ServerStream
	events *store.WatchStream
	failed chan error // why the stream must end; the first counts

	// signals is the number of reasons to send since the sender looked last; 0
	// means that no sender runs.
	signals atomic.Int64

	mu    sync.Mutex
	ended bool // the handler is about to return: nothing is created or sent any more
	// replies are answers that the store has no message for.
	replies []watchReply
	// created counts the watches that the store was asked for and accepted.
	created uint64
	// fragment has the watches that want large responses in parts, and the value
	// of created when they were.
	fragment map[int64]uint64

	createdSent uint64 // by the sender; equal to created when all were sent
}

// watchReply is an encoded answer that must not overtake the answers to the
// creates before it.
type watchReply struct {
	message raw
	after   uint64 // value of created when it was queued
}

// Watch serves one stream of watches. It returns when the client's context ends,
// the server stops, or the stream or the store fails; not when the client has no
// more requests (WCH-34).
func (svc watchService) Watch(stream pb.Watch_WatchServer) error {
	w := &watchStream{s: svc.s, grpc: stream, failed: make(chan error, 1)}
	w.events = svc.s.store.NewWatchStream(w.wake)
	defer w.end()
	go w.receive(stream)

	ctx := stream.Context()
	select {
	case err := <-w.failed:
		return toStatus(err)
	case <-ctx.Done():
		return toStatus(ctx.Err())
	case <-svc.s.stop:
		return errStopped // clients create their watches again elsewhere or later (V-18)
	}
}

// fail makes the handler return.
func (w *watchStream) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// receive handles requests until the client has sent its last one, or the stream
// is gone.
func (w *watchStream) receive(stream pb.Watch_WatchServer) {
	for {
		req, err := stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.fail(err)
			}
			return
		}
		if !w.handle(req) {
			return
		}
	}
}

// handle returns false if the stream has ended.
func (w *watchStream) handle(req *pb.WatchRequest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	switch r := req.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		w.create(r.CreateRequest)
	case *pb.WatchRequest_CancelRequest:
		w.events.Cancel(r.CancelRequest.WatchId) // unknown IDs are not answered (WCH-31)
	case *pb.WatchRequest_ProgressRequest:
		w.events.RequestProgress()
	}
	return true
}

// end lets go of the store's stream: at once, or when a sender is done that is in
// the middle of something.
func (w *watchStream) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	if w.signals.Add(1) == 1 {
		w.events.Close()
	}
}
