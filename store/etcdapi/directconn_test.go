package etcdapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// directPair returns a directConn and the other end of it.
func directPair(t *testing.T, network string) (direct, peer net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err = net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	direct = newDirectConn(accepted)
	if _, ok := direct.(*directConn); !ok {
		t.Fatalf("a %T is not read directly", accepted)
	}
	t.Cleanup(func() { direct.Close(); peer.Close() })
	return direct, peer
}

func TestDirectConn(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			direct, peer := directPair(t, network)
			// More than the socket's buffers hold, so that both have to wait.
			data := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
			go func() {
				_, _ = io.Copy(peer, peer) // an echo
				_ = peer.Close()
			}()
			sent := make(chan error, 1)
			go func() {
				n, err := direct.Write(data)
				if err == nil && n != len(data) {
					err = io.ErrShortWrite
				}
				sent <- err
			}()
			got := make([]byte, len(data))
			if _, err := io.ReadFull(direct, got); err != nil {
				t.Fatal(err)
			}
			if err := <-sent; err != nil || !bytes.Equal(got, data) {
				t.Fatalf("sent: %v; came back the same: %v", err, bytes.Equal(got, data))
			}
		})
	}
}

func TestDirectConnEnds(t *testing.T) {
	direct, peer := directPair(t, "tcp")
	if err := direct.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := direct.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v", err)
	}
	if err := direct.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := direct.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("closed by the peer: %d, %v", n, err)
	}
	for err = nil; err == nil; { // the first ones may still go out
		_, err = direct.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("write to a closed peer: %v", err)
	}
	waiting := make(chan error)
	other, _ := directPair(t, "tcp")
	go func() {
		_, err := other.Read(make([]byte, 1))
		waiting <- err
	}()
	other.Close()
	if err := <-waiting; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed while reading: %v", err)
	}
	if _, err := other.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestDirectConnDoesNotAllocate(t *testing.T) {
	direct, peer := directPair(t, "tcp")
	b := make([]byte, 8)
	n := testing.AllocsPerRun(100, func() {
		if _, err := direct.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Read(b); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations a write", n)
	}
}
