package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// knocker connects anew for every request, as a client does that comes just now. Requests
// over connections that stay would not notice a socket that is not there for a moment.
type knocker struct {
	endpoint string
	dials    *dials
	secure   *tls.Config
	answers  *gaps

	mu      sync.Mutex
	made    int
	failed  map[string]int // by kind of error
	longest time.Duration  // from the attempt to connect to the answer or the error
}

func newKnocker(endpoint string, d *dials, secure *tls.Config) *knocker {
	return &knocker{endpoint: endpoint, dials: d, secure: secure, failed: map[string]int{}, answers: newGaps("new connections at " + endpoint)}
}

// run knocks until ctx ends.
func (k *knocker) run(ctx context.Context, o settings) {
	for ctx.Err() == nil {
		begin := time.Now()
		err := k.knock(o.limit)
		took := time.Since(begin)
		k.mu.Lock()
		k.made++
		k.longest = max(k.longest, took)
		if err != nil {
			k.failed[kindOf(err)]++
		} else {
			k.answers.answered()
		}
		k.mu.Unlock()
		pause(ctx, o.pause)
	}
}

// knock asks for the version on a connection of its own. A limit of its own, and not the
// end of the load, ends it: an answer that is late at the end is waited for.
func (k *knocker) knock(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := k.dials.dial(ctx, k.endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	if isSecure(k.endpoint) {
		conn = tls.Client(conn, k.secure)
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// kindOf names an error, without the addresses in it.
func kindOf(err error) string {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	default:
		return err.Error()
	}
}

func (k *knocker) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("new connections at %s: %d, without an answer %d %v, longest wait for an answer %d ms",
		k.endpoint, k.made, sum(k.failed), k.failed, k.longest.Milliseconds())
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
