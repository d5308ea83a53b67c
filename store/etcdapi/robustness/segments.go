package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// linkInterval is how often segments are looked for. One takes seconds to
// fill, and is not trimmed before the next one is there.
const linkInterval = 50 * time.Millisecond

// segmentKeeper gives each segment of a log a second name in another directory,
// so that the whole log can be read at the end, also what was trimmed.
type segmentKeeper struct {
	from, to string
	stop     chan struct{}
	done     chan error
}

func keepSegments(from, to string) (*segmentKeeper, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("keep the log: %w", err)
	}
	k := &segmentKeeper{from: from, to: to, stop: make(chan struct{}), done: make(chan error, 1)}
	go k.run()
	return k, nil
}

func (k *segmentKeeper) run() {
	for {
		if err := k.link(); err != nil {
			k.done <- fmt.Errorf("keep the log: %w", err)
			return
		}
		select {
		case <-k.stop:
			k.done <- k.link()
			return
		case <-time.After(linkInterval):
		}
	}
}

func (k *segmentKeeper) link() error {
	entries, err := os.ReadDir(k.from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".wal") {
			continue
		}
		err := os.Link(filepath.Join(k.from, e.Name()), filepath.Join(k.to, e.Name()))
		// It is linked already, or was trimmed since. Reading the log finds gaps.
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// finish links what there is and ends the search. It is called once.
func (k *segmentKeeper) finish() error {
	close(k.stop)
	return <-k.done
}
