package etcdapi

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

// answers are those of one connection that gRPC has not sent yet, and that hold something which others
// wait for. gRPC frees what it has sent, and what it will not send since the client gave the request
// up; what is under way when a connection breaks it forgets.
type answers struct {
	// began and ended, if set, are called when there is a first answer and when there is none any more.
	began, ended func()
	// progress is when something was written last, in ns of Unix time; 0 while there are no answers.
	progress atomic.Int64

	mu     sync.Mutex
	closed bool
	open   map[*func()]struct{}
}

// clientAddr is the address of a client. By it a request finds the connection that it came on.
type clientAddr struct {
	net.Addr
	answers *answers
}

// whenSent returns a function to be called when the answer to the request of ctx is sent. It
// calls done, as does the end of the connection if that comes first: once in all.
func whenSent(ctx context.Context, done func()) func() {
	if p, ok := peer.FromContext(ctx); ok {
		if addr, ok := p.Addr.(*clientAddr); ok {
			return addr.answers.add(done)
		}
	}
	return sync.OnceFunc(done) // a request from within the server
}

func (a *answers) add(done func()) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		go done() // not here: who asks may hold what done needs
		return func() {}
	}
	if a.open == nil {
		a.open = make(map[*func()]struct{})
	}
	if len(a.open) == 0 {
		a.progress.Store(time.Now().UnixNano())
		if a.began != nil {
			a.began()
		}
	}
	one := &done
	a.open[one] = struct{}{}
	return func() {
		a.mu.Lock()
		_, open := a.open[one]
		delete(a.open, one)
		if open && len(a.open) == 0 {
			a.end()
		}
		a.mu.Unlock()
		if open {
			done()
		}
	}
}

// close ends all answers that are open. The connection is closed before: nothing of them is sent any more.
func (a *answers) close() {
	a.mu.Lock()
	a.closed = true
	open := a.open
	a.open = nil
	if len(open) > 0 {
		a.end()
	}
	a.mu.Unlock()
	for done := range open {
		(*done)()
	}
}

// end is called when the last answer has ended. a.mu is held.
func (a *answers) end() {
	a.progress.Store(0)
	if a.ended != nil {
		a.ended()
	}
}
