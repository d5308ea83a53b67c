package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	var mu sync.Mutex
	seen := map[int]int{}
	l, err := times(t.Context(), 7, 100, func(_ context.Context, w, n int) error {
		mu.Lock()
		defer mu.Unlock()
		seen[n]++
		return nil
	})
	if err != nil || len(l.samples) != 100 || len(seen) != 100 {
		t.Errorf("%d samples, %d operations, %v", len(l.samples), len(seen), err)
	}
}

func TestLoadEndsWithItsFirstError(t *testing.T) {
	broken := errors.New("broken")
	_, err := times(t.Context(), 3, 1000, func(ctx context.Context, _, n int) error {
		if n == 10 {
			return broken
		}
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v", err)
	}
}

// A server that stands still for longer than there are workers must not look good: what
// could not begin in time counts from when it was due.
func TestSteadyCountsFromTheDueTime(t *testing.T) {
	release := make(chan struct{})
	var begun atomic.Int64
	all := make(chan struct{})
	s := startSteady(t.Context(), 10_000, func(context.Context, int, int) error {
		if begun.Add(1) == steadyWorkers {
			close(all)
		}
		<-release
		return nil
	})
	<-all
	still := 100 * time.Millisecond
	time.Sleep(still)
	close(release)
	for begun.Load() < 2*steadyWorkers {
		time.Sleep(time.Millisecond)
	}
	l, err := s.stop()
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, d := range l.all() {
		if d > still/2 {
			late++
		}
	}
	if late < steadyWorkers+1 {
		t.Errorf("%d of %d operations count as late: only those under way do", late, len(l.samples))
	}
}

// Each record is on disk when append returns.
func TestSyncLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := openSyncLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	var wg sync.WaitGroup
	for w := range byte(8) {
		wg.Go(func() {
			for i := range byte(20) {
				record := []byte{'<', w, i, '>'}
				if err := l.append(record); err != nil {
					t.Error(err)
					return
				}
				if text := head(t, path, 8*20*len(record)); !bytes.Contains(text, record) {
					t.Errorf("record %d of %d is not in the file", i, w)
				}
			}
		})
	}
	wg.Wait()
}

// head returns the first n bytes of a file.
func head(t *testing.T, path string, n int) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := io.ReadFull(f, b); err != nil {
		t.Error(err)
	}
	return b
}
