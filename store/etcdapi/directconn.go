package etcdapi

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// directConn is a connection that reads and writes its socket without telling Go's
// scheduler. A call of the system may block, so the scheduler has a thread of its own
// wake up and look for one that does, each time a server that was idle calls one. Those
// on a socket never block: it is in non-blocking mode, and Go's poller waits.
type directConn struct {
	net.Conn
	raw   syscall.RawConn
	in    transfer
	out   transfer
	read  func(fd uintptr) bool
	write func(fd uintptr) bool
}

// transfer is one call of Read or Write under way.
type transfer struct {
	mu   sync.Mutex // held by the one who reads, or writes
	data []byte
	n    int
	err  syscall.Errno
}

// newDirectConn returns conn itself if it is not a socket.
func newDirectConn(conn net.Conn) net.Conn {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return conn
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return conn
	}
	c := &directConn{Conn: conn, raw: raw}
	c.read = func(fd uintptr) bool { return c.in.call(syscall.SYS_READ, fd) }
	c.write = func(fd uintptr) bool { return c.out.call(syscall.SYS_WRITE, fd) }
	return c
}

// call returns whether it is done, or has to wait until the socket is ready.
func (t *transfer) call(trap, fd uintptr) bool {
	for {
		n, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.data))), uintptr(len(t.data)))
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			t.n = int(n)
		}
		t.err = err
		return true
	}
}

// begin takes the transfer for data.
func (t *transfer) begin(data []byte) {
	t.mu.Lock()
	t.data, t.n, t.err = data, 0, 0
}

func (t *transfer) end() {
	t.data = nil
	t.mu.Unlock()
}

func (c *directConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.in.begin(p)
	defer c.in.end()
	if err := c.raw.Read(c.read); err != nil {
		return 0, c.failed("read", err)
	}
	if c.in.err != 0 {
		return 0, c.failed("read", os.NewSyscallError("read", c.in.err))
	}
	if c.in.n == 0 {
		return 0, io.EOF
	}
	return c.in.n, nil
}

func (c *directConn) Write(p []byte) (int, error) {
	c.out.begin(p)
	defer c.out.end()
	for done := 0; done < len(p); done += c.out.n {
		c.out.data, c.out.n = p[done:], 0
		if err := c.raw.Write(c.write); err != nil {
			return done, c.failed("write", err)
		}
		if c.out.err != 0 {
			return done, c.failed("write", os.NewSyscallError("write", c.out.err))
		}
	}
	return len(p), nil
}

// failed gives an error the form that net's have. RawConn's errors have it already, but
// name another operation.
func (c *directConn) failed(op string, err error) error {
	if e, ok := err.(*net.OpError); ok {
		err = e.Err
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
