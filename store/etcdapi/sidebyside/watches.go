package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// awaitTimeout is how long something may be missing before the server has failed.
const awaitTimeout = 30 * time.Second

// watches are watches on streams of their own, as kube-apiserver has them.
type watches struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	list     []*watch
	wg       sync.WaitGroup
	patience time.Duration // awaitTimeout, but for tests
}

// watch is one of them. What is not atomic is for its reader, and for
// everybody once the watches are closed.
type watch struct {
	stream grpc.ClientStream
	// onEvent, if set, gets the key and the value of each event, the value being
	// nil for a deletion. Both are valid until it returns.
	onEvent func(key, value []byte)

	ready    chan struct{} // closed when the watch has been created
	events   atomic.Int64
	progress atomic.Int64 // messages of this watch without events
	answers  atomic.Int64 // to requests for progress
	last     int64        // revision of the last event
}

func newWatches(ctx context.Context) *watches {
	ctx, cancel := context.WithCancelCause(needsLeader(ctx))
	return &watches{ctx: ctx, cancel: cancel, patience: awaitTimeout}
}

// open begins a watch of a prefix. Revisions below start are not wanted, 0 stands for
// the next one.
func (w *watches) open(conn *grpc.ClientConn, prefix string, start int64, onEvent func(key, value []byte)) (*watch, error) {
	desc := &grpc.StreamDesc{StreamName: "Watch", ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(w.ctx, desc, pb.Watch_Watch_FullMethodName, grpc.ForceCodecV2(frameCodec{}))
	if err != nil {
		return nil, fmt.Errorf("open a watch: %w", err)
	}
	create := &pb.WatchCreateRequest{
		Key: []byte(prefix), RangeEnd: prefixEnd(prefix), StartRevision: start, PrevKv: true, ProgressNotify: true,
	}
	if err := stream.SendMsg(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return nil, fmt.Errorf("begin a watch: %w", err)
	}
	x := &watch{stream: stream, onEvent: onEvent, ready: make(chan struct{}), last: start - 1}
	w.list = append(w.list, x)
	w.wg.Go(func() {
		if err := x.read(); w.ctx.Err() == nil {
			w.cancel(fmt.Errorf("watch of %s: %w", prefix, err))
		}
	})
	return x, nil
}

// created waits until all watches have begun.
func (w *watches) created() error {
	for _, x := range w.list {
		select {
		case <-x.ready:
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		case <-time.After(w.patience):
			return fmt.Errorf("a watch was not created within %v", w.patience)
		}
	}
	return nil
}

// await waits until each watch has had n events, and no more.
func (w *watches) await(n int) error {
	end := time.Now().Add(w.patience)
	for {
		fewest, most := w.list[0].events.Load(), int64(0)
		for _, x := range w.list {
			got := x.events.Load()
			fewest, most = min(fewest, got), max(most, got)
		}
		switch {
		case most > int64(n):
			return fmt.Errorf("a watch got %d events of %d changes", most, n)
		case fewest == int64(n):
			return nil
		case time.Now().After(end):
			return fmt.Errorf("a watch got only %d events of %d changes within %v", fewest, n, w.patience)
		}
		if err := pause(w.ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// close ends all watches. It returns what went wrong with the first that failed.
func (w *watches) close() error {
	errEnd := errors.New("closed")
	w.cancel(errEnd)
	w.wg.Wait()
	if err := context.Cause(w.ctx); err != errEnd {
		return err
	}
	return nil
}

// read takes messages until the stream ends, and returns why.
func (x *watch) read() error {
	var message frame
	for {
		if err := x.stream.RecvMsg(&message); err != nil {
			return err
		}
		if err := x.take(message); err != nil {
			return err
		}
	}
}

// take looks at one WatchResponse.
func (x *watch) take(message frame) error {
	var (
		created, canceled, answer bool
		events                    int64
	)
	for f := range fieldsOf(message) {
		switch f.num {
		case 2: // watch_id
			answer = int64(f.value) == -1
		case 3:
			created = f.value == 1
		case 4:
			canceled = f.value == 1
		case 11:
			if err := x.takeEvent(f.bytes); err != nil {
				return err
			}
			events++
		}
	}
	switch {
	case canceled:
		return errors.New("the server canceled it")
	case created:
		select {
		case <-x.ready:
			return errors.New("it was created twice")
		default:
			close(x.ready)
		}
	case answer:
		x.answers.Add(1)
	case events == 0:
		x.progress.Add(1)
	}
	x.events.Add(events)
	return nil
}

// takeEvent looks at one event. The same revision may come more than once, if one
// transaction changes many keys.
func (x *watch) takeEvent(event []byte) error {
	var kv []byte
	var deletion bool
	for f := range fieldsOf(event) {
		switch f.num {
		case 1:
			deletion = f.value == 1
		case 2:
			kv = f.bytes
		}
	}
	var key, value []byte
	var mod int64
	for f := range fieldsOf(kv) {
		switch f.num {
		case 1:
			key = f.bytes
		case 3:
			mod = int64(f.value)
		case 5:
			value = f.bytes
		}
	}
	if mod < x.last || len(key) == 0 {
		return fmt.Errorf("event of %q at revision %d after one at %d", key, mod, x.last)
	}
	x.last = mod
	if x.onEvent != nil {
		if deletion {
			value = nil
		}
		x.onEvent(key, value)
	}
	return nil
}
