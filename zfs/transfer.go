package zfs

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// errReceiverGone ends a send whose stream nobody takes any more.
var errReceiverGone = errors.New("the receiving side has ended")

// transfer runs send on one host into receive on another. progress, if not nil,
// gets the number of bytes of each piece, from one goroutine.
func transfer(ctx context.Context, from host, send []string, to host, receive []string, progress func(n int)) error {
	sendCtx, stopSend := context.WithCancel(ctx)
	defer stopSend()
	r, w := io.Pipe()
	var receiverEnded, senderFailedFirst atomic.Bool
	sent := make(chan error, 1)
	go func() {
		err := from.run(sendCtx, nil, &meter{w, progress}, send...)
		senderFailedFirst.Store(err != nil && !receiverEnded.Load())
		// A plain end also after a failure: zfs receive -s keeps what came so far.
		w.Close()
		sent <- err
	}()
	receiveErr := to.run(ctx, r, nil, receive...)
	receiverEnded.Store(true)
	r.CloseWithError(errReceiverGone)
	if receiveErr != nil {
		stopSend()
	}
	sendErr := <-sent
	switch {
	case ctx.Err() != nil && receiveErr != nil:
		return receiveErr
	case senderFailedFirst.Load():
		// The receiver's complaint of a stream without an end is only the consequence.
		return sendErr
	}
	return receiveErr
}

// meter passes on what is written and counts it.
type meter struct {
	to       io.Writer
	progress func(n int)
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	if m.progress != nil && n > 0 {
		m.progress(n)
	}
	return n, err
}

// keptPart tells whether an interrupted receive has kept what it got.
func keptPart(err error) bool {
	var c *CommandError
	return errors.As(err, &c) && strings.Contains(c.Stderr, "Partially received snapshot is saved")
}

// countingReader passes on what is read and counts it.
type countingReader struct {
	from     io.Reader
	progress func(n int)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if n > 0 {
		c.progress(n)
	}
	return n, err
}
