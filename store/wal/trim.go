package wal

import (
	"errors"
	"fmt"
	"io/fs"
)

// TrimBefore removes the segments whose frames are all numbered seq or less.
// The segment that is being appended to stays. It may run while a frame is
// appended. The caller has made sure that the tree holds all frames up to seq
// durably. If a removal fails, what is left is removed by the next call.
func (l *Log) TrimBefore(seq uint64) error {
	l.trimming.Lock()
	defer l.trimming.Unlock()
	removed := false
	// Oldest first, so that a crash leaves no gap.
	for {
		first, ok := l.oldestBefore(seq)
		if !ok {
			break
		}
		if err := l.state(); err != nil {
			return fmt.Errorf("trim: %w", err)
		}
		if err := l.o.FS.Remove(l.o.path(first)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("trim the write-ahead log: %w", err)
		}
		l.mu.Lock()
		l.segs = l.segs[1:]
		l.mu.Unlock()
		removed = true
	}
	if !removed {
		return nil
	}
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return fmt.Errorf("trim the write-ahead log: %w", err)
	}
	return nil
}

// oldestBefore names the oldest segment if no frame after seq is in it and it
// is not the last one.
func (l *Log) oldestBefore(seq uint64) (first uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segs) < 2 || l.segs[1].first-1 > seq {
		return 0, false
	}
	return l.segs[0].first, true
}
