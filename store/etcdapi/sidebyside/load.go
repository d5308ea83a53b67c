package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// operation is what a load repeats. n counts the operations of the whole load; a
// worker never has two under way.
type operation func(ctx context.Context, worker, n int) error

// sample is one operation: when it was due and how long after that it ended.
type sample struct {
	due  time.Time
	took time.Duration
}

// load is what a load generator has seen.
type load struct {
	samples []sample
	wall    time.Duration
}

func (l load) rate() float64 { return float64(len(l.samples)) / l.wall.Seconds() }

// took returns how long the operations took that were due between two moments.
func (l load) took(from, to time.Time) []time.Duration {
	var out []time.Duration
	for _, s := range l.samples {
		if !s.due.Before(from) && s.due.Before(to) {
			out = append(out, s.took)
		}
	}
	return out
}

// all returns how long each operation took.
func (l load) all() []time.Duration { return l.took(time.Time{}, time.Now().Add(time.Hour)) }

// flatOut has each worker do one operation after the other until d is over.
func flatOut(ctx context.Context, workers int, d time.Duration, op operation) (load, error) {
	end := time.Now().Add(d)
	return run(ctx, workers, op, func(int) (time.Time, bool) {
		now := time.Now()
		return now, now.Before(end)
	})
}

// times does n operations as fast as the workers can.
func times(ctx context.Context, workers, n int, op operation) (load, error) {
	return run(ctx, workers, op, func(i int) (time.Time, bool) { return time.Now(), i < n })
}

// run is the loop of all loads. next tells when the n-th operation is due, after
// having waited for that time, or that there is none.
func run(ctx context.Context, workers int, op operation, next func(n int) (time.Time, bool)) (load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		count atomic.Int64
		wg    sync.WaitGroup
		seen  = make([][]sample, workers)
	)
	begun := time.Now()
	for w := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(count.Add(1)) - 1
				due, more := next(n)
				if !more {
					return
				}
				if err := op(ctx, w, n); err != nil {
					cancel(fmt.Errorf("operation %d: %w", n, err)) // the first one counts
					return
				}
				seen[w] = append(seen[w], sample{due, time.Since(due)})
			}
		})
	}
	wg.Wait()
	l := load{wall: time.Since(begun)}
	for _, s := range seen {
		l.samples = append(l.samples, s...)
	}
	return l, context.Cause(ctx)
}

// steadyWorkers is how many operations of a steady load can be under way; if all
// are, the next ones begin late, and their time runs from when they were due.
const steadyWorkers = 32

// steady is a load in the background with a fixed number of operations a second.
type steady struct {
	quit chan struct{}
	done chan struct{}
	load load
	err  error
}

func startSteady(ctx context.Context, perSecond float64, op operation) *steady {
	s := &steady{quit: make(chan struct{}), done: make(chan struct{})}
	begun := time.Now()
	go func() {
		defer close(s.done)
		s.load, s.err = run(ctx, steadyWorkers, op, func(n int) (time.Time, bool) {
			due := begun.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
			select {
			case <-time.After(time.Until(due)):
				return due, true
			case <-ctx.Done():
			case <-s.quit:
			}
			return due, false
		})
	}()
	return s
}

// stop lets the operations under way end and returns what was seen. It is called once.
func (s *steady) stop() (load, error) {
	close(s.quit)
	<-s.done
	return s.load, s.err
}

// pause waits, but not longer than ctx lasts.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
