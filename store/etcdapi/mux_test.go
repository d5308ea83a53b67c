package etcdapi

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// failingListener fails once before it accepts.
type failingListener struct {
	net.Listener
	err  error
	once sync.Once
}

func (l *failingListener) Accept() (net.Conn, error) {
	var err error
	l.once.Do(func() { err = l.err })
	if err != nil {
		return nil, err
	}
	return l.Listener.Accept()
}

func TestAcceptFails(t *testing.T) {
	listen := func(t *testing.T, err error) *failingListener {
		l, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			t.Fatal(e)
		}
		t.Cleanup(func() { l.Close() })
		return &failingListener{Listener: l, err: err}
	}
	t.Run("for want of descriptors", func(t *testing.T) {
		s, _ := startServer(t, Config{})
		l := listen(t, &net.OpError{Op: "accept", Err: syscall.EMFILE})
		serveOn(t, s, l)
		if _, err := etcdserverpb.NewMaintenanceClient(dial(t, l.Addr().String())).Status(testContext(t), &etcdserverpb.StatusRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("for good", func(t *testing.T) {
		s, _ := startServer(t, Config{})
		broken := errors.New("broken")
		if err := s.Serve(listen(t, broken)); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
	t.Run("after the stop", func(t *testing.T) {
		s, _ := startServer(t, Config{})
		if err := s.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		l := listen(t, nil)
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
		if _, err := l.Listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener is open: %v", err)
		}
	})
}

// TestConnQueue checks that a connection is never lost between accept and stop.
func TestConnQueue(t *testing.T) {
	q := newConnQueue()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go q.put(theirs)
	got, err := q.Accept()
	if err != nil || got != theirs {
		t.Fatalf("%v, %v", got, err)
	}
	q.Close()
	q.Close()
	q.put(theirs)
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that nobody takes stays open")
	}
	if _, err := q.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
