package etcdapi

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func openKeepAlives(t *testing.T, conn *grpc.ClientConn, n int) []grpc.BidiStreamingClient[etcdserverpb.LeaseKeepAliveRequest, etcdserverpb.LeaseKeepAliveResponse] {
	t.Helper()
	ctx := testContext(t)
	client := etcdserverpb.NewLeaseClient(conn)
	streams := make([]grpc.BidiStreamingClient[etcdserverpb.LeaseKeepAliveRequest, etcdserverpb.LeaseKeepAliveResponse], n)
	for i := range streams {
		stream, err := client.LeaseKeepAlive(ctx)
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(i) + 1}); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		streams[i] = stream
	}
	for i, stream := range streams {
		resp, err := stream.Recv()
		if err != nil || resp.ID != int64(i)+1 || resp.TTL != 0 {
			t.Fatalf("stream %d: %v, %v", i, resp, err)
		}
	}
	return streams
}

// TestStopWithOpenStreams is GRPC-5, and GRPC-14 as V-18 wants it.
func TestStopWithOpenStreams(t *testing.T) {
	s, addr := startServer(t, Config{})
	streams := openKeepAlives(t, dial(t, addr), 2000)
	if err := s.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for i, stream := range streams {
		_, err := stream.Recv()
		if code := status.Code(err); code != codes.Unavailable {
			t.Fatalf("V-18 stream %d: %v", i, err)
		}
	}
	if err := s.Stop(testContext(t)); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

// TestDraining checks that Stop waits for single requests in flight.
func TestDraining(t *testing.T) {
	c := newCalls()
	c.beginUnary()
	c.beginUnary()
	idle := c.unaryIdle()
	c.endUnary()
	select {
	case <-idle:
		t.Error("idle with a request in flight")
	default:
	}
	c.endUnary()
	<-idle
	<-c.unaryIdle()
}

// TestStopWithOpenWatches is GRPC-14 as V-18 wants it.
func TestStopWithOpenWatches(t *testing.T) {
	s, addr := startServer(t, Config{})
	client := etcdserverpb.NewWatchClient(dial(t, addr))
	var streams []etcdserverpb.Watch_WatchClient
	for range 100 {
		w, err := client.Watch(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		create := &etcdserverpb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}}
		if err := w.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
			t.Fatal(err)
		}
		if resp, err := w.Recv(); err != nil || !resp.Created {
			t.Fatalf("%v, %v", resp, err)
		}
		streams = append(streams, w)
	}
	if err := s.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for _, w := range streams {
		_, err := w.Recv()
		wantStatus(t, err, codes.Unavailable, "etcdserver: server stopped")
	}
}

// TestStopAnswersWhatIsInFlight lets a large read wait for the list budget while
// the server is stopped.
func TestStopAnswersWhatIsInFlight(t *testing.T) {
	s, addr := startServer(t, Config{ListBudget: 1 << 20})
	kv := etcdserverpb.NewKVClient(dial(t, addr))
	if _, err := kv.Put(testContext(t), &etcdserverpb.PutRequest{Key: []byte("a"), Value: make([]byte, 2*smallRead)}); err != nil {
		t.Fatal(err)
	}
	held, err := s.budget.acquire(testContext(t), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := kv.Range(testContext(t), &etcdserverpb.RangeRequest{Key: []byte("a")})
		answered <- err
	}()
	for s.budget.stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(testContext(t)) }()
	<-s.stop
	s.budget.release(held)
	if err := <-answered; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port still accepts")
	}
}

// TestStopGivesUp checks that Stop does not wait for ever for a request.
func TestStopGivesUp(t *testing.T) {
	s, addr := startServer(t, Config{ListBudget: 1 << 20})
	kv := etcdserverpb.NewKVClient(dial(t, addr))
	if _, err := kv.Put(testContext(t), &etcdserverpb.PutRequest{Key: []byte("a"), Value: make([]byte, 2*smallRead)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.budget.acquire(testContext(t), 1<<20); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := kv.Range(testContext(t), &etcdserverpb.RangeRequest{Key: []byte("a")})
		answered <- err
	}()
	for s.budget.stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-answered; status.Code(err) != codes.Unavailable {
		t.Errorf("the request that was cut off: %v", err)
	}
}

func TestStopOfAServerWithASilentClient(t *testing.T) {
	s, addr := startServer(t, Config{})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := s.Stop(testContext(t)); err != nil {
		t.Error(err)
	}
	conn.SetDeadline(time.Now().Add(waitLimit))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the connection is still open: %v", err)
	}
}
