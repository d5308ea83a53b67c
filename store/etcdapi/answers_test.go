package etcdapi

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// stoppedConn is the connection of a client that reads no more once stop is called.
type stoppedConn struct {
	net.Conn
	stopped <-chan struct{}
	broken  chan struct{}
	once    sync.Once
}

func (c *stoppedConn) Read(p []byte) (int, error) {
	select {
	case <-c.stopped:
		<-c.broken
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(p)
	}
}

func (c *stoppedConn) Close() error {
	c.once.Do(func() { close(c.broken) })
	return c.Conn.Close()
}

// stoppable returns a connection of a client that reads no more once stop is closed.
func (t *kvTest) stoppable(stop <-chan struct{}, conns chan<- *stoppedConn) *grpc.ClientConn {
	return dial(t.T, "passthrough:///"+t.target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			conn, err := net.Dial("tcp", t.target)
			if err != nil {
				return nil, err
			}
			c := &stoppedConn{Conn: conn, stopped: stop, broken: make(chan struct{})}
			select {
			case conns <- c:
			default: // it connects again
			}
			return c, nil
		}))
}

// What a connection that breaks in the middle of a large answer has of the list budget and of the
// turns comes back, also while others share the list.
func TestBrokenConnectionGivesBack(t *testing.T) {
	sorted := pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, SortOrder: pb.RangeRequest_DESCEND}
	txn := pb.TxnRequest{Success: []*pb.RequestOp{thenRange(&underP)}}
	for name, ask := range map[string]func(ctx context.Context, kv pb.KVClient) error{
		"list": func(ctx context.Context, kv pb.KVClient) error {
			_, err := kv.Range(ctx, &underP)
			return err
		},
		"sorted list": func(ctx context.Context, kv pb.KVClient) error {
			_, err := kv.Range(ctx, &sorted)
			return err
		},
		"transaction": func(ctx context.Context, kv pb.KVClient) error {
			_, err := kv.Txn(ctx, &txn)
			return err
		},
		"stream": func(ctx context.Context, kv pb.KVClient) error {
			stream, err := kv.RangeStream(ctx, &underP)
			for err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKVTest(t, Config{ListBudget: 64 << 20, MaxRequestBytes: 8 << 20})
			k.fill(60, 45_000) // the first chunk of a stream is large too
			stop := make(chan struct{})
			conns := make(chan *stoppedConn, 1)
			kv := pb.NewKVClient(k.stoppable(stop, conns))
			if _, err := kv.Range(k.ctx, &pb.RangeRequest{Key: []byte("none")}); err != nil {
				t.Fatal(err)
			}
			close(stop)
			ended := make(chan error)
			go func() { ended <- ask(k.ctx, kv) }()
			k.until("the answer is under way", func() bool { return k.s.budget.stats().InUse > 0 })
			if resp := k.get(&underP); len(resp.Kvs) != 60 { // shares what the other one has
				t.Errorf("%d keys", len(resp.Kvs))
			}
			(<-conns).Close()
			if err := <-ended; err == nil {
				t.Error("the broken client got its answer")
			}
			k.until("the budget is free again", func() bool { return k.s.budget.stats().InUse == 0 })
			k.until("all turns are given back", func() bool {
				k.s.turns.mu.Lock()
				defer k.s.turns.mu.Unlock()
				return len(k.s.turns.taken) == 0
			})
			k.until("nothing is kept", func() bool {
				k.s.shared.mu.Lock()
				defer k.s.shared.mu.Unlock()
				return len(k.s.shared.lists) == 0
			})
		})
	}
}

func TestAnswersEndOnce(t *testing.T) {
	var a answers
	var ends []string
	first := a.add(func() { ends = append(ends, "first") })
	a.add(func() { ends = append(ends, "second") })
	first()
	first()
	a.close()
	first()
	if len(ends) != 2 || ends[0] != "first" || ends[1] != "second" {
		t.Errorf("ended: %q", ends)
	}
	late := make(chan struct{})
	end := a.add(func() { close(late) })
	<-late
	end()
}

// A client that stops, with its connection open, keeps the budget only until somebody else has waited for it
// for some time.
func TestStoppedClientIsCutOff(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20, MaxRequestBytes: 8 << 20})
	k.fill(60, 45_000)
	stop := make(chan struct{})
	conns := make(chan *stoppedConn, 1)
	kv := pb.NewKVClient(k.stoppable(stop, conns))
	if _, err := kv.Range(k.ctx, &pb.RangeRequest{Key: []byte("none")}); err != nil {
		t.Fatal(err)
	}
	close(stop)
	ended := make(chan error)
	go func() {
		_, err := kv.Range(k.ctx, &underP)
		ended <- err
	}()
	k.until("the answer is under way", func() bool { return k.s.budget.stats().InUse > 0 })
	answered := make(chan int)
	go func() {
		resp, err := k.kv.Range(k.ctx, &pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, Limit: 59})
		if err != nil {
			t.Error(err)
		}
		answered <- len(resp.GetKvs())
	}()
	k.until("another one waits", func() bool { return k.s.budget.stats().Waiting == 1 })
	k.s.stalls.cut(time.Now().Add(-time.Hour)) // nobody is late
	if n := k.s.budget.stats().Waiting; n != 1 {
		t.Errorf("%d wait", n)
	}
	k.until("nothing more can be written", func() bool {
		k.s.stalls.cut(time.Now().Add(time.Hour))
		return k.s.budget.stats().Waiting == 0
	})
	if keys := <-answered; keys != 59 {
		t.Errorf("%d keys", keys)
	}
	(<-conns).Close()
	if err := <-ended; err == nil {
		t.Error("the stopped client got its answer")
	}
	k.until("no connection is looked after", func() bool {
		k.s.stalls.mu.Lock()
		defer k.s.stalls.mu.Unlock()
		return len(k.s.stalls.conns) == 0
	})
}

// A connection whose last answer has ended, and which has not left yet, is not stalled.
func TestStallsSpareWhoIsDone(t *testing.T) {
	s := newStalls(slog.New(slog.DiscardHandler))
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := &sortedConn{Conn: ours}
	s.add(c)
	s.cut(time.Now().Add(time.Hour))
	go theirs.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection is closed: %v", err)
	}
	c.answers.add(func() {})
	s.cut(time.Now().Add(time.Hour))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("one that is stalled is not closed")
	}
}
