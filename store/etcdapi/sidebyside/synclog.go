package main

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// logSize is preallocated; the log goes around when it is full.
const logSize = 64 << 20

// syncLog is a file that is only appended to and synced. A sync is for everything that
// came while the one before was under way. It is safe for concurrent use.
type syncLog struct {
	file *os.File

	mu      sync.Mutex
	turn    *sync.Cond // a batch was synced
	pending []byte     // of the batch that is filling
	batch   int        // its number
	synced  int        // number of the last batch on disk
	writing bool
	offset  int64
	err     error // the first; the log is then of no use
}

func openSyncLog(path string) (*syncLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, logSize); err != nil {
		return nil, fmt.Errorf("preallocate %s: %w", path, err)
	}
	l := &syncLog{file: f, batch: 1}
	l.turn = sync.NewCond(&l.mu)
	return l, nil
}

func (l *syncLog) close() error { return l.file.Close() }

// append returns when the record is on disk.
func (l *syncLog) append(record []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, record...)
	mine := l.batch
	for l.writing && l.synced < mine && l.err == nil {
		l.turn.Wait()
	}
	if l.synced < mine && l.err == nil {
		l.flush()
	}
	return l.err
}

// flush writes and syncs the batch that is filling. The lock is held when it begins and
// when it ends, but not in between.
func (l *syncLog) flush() {
	bytes := l.pending
	l.pending = nil
	l.writing = true
	l.batch++
	if l.offset+int64(len(bytes)) > logSize {
		l.offset = 0
	}
	at := l.offset
	l.offset += int64(len(bytes))
	l.mu.Unlock()
	_, err := l.file.WriteAt(bytes, at)
	if err == nil {
		err = unix.Fdatasync(int(l.file.Fd()))
	}
	l.mu.Lock()
	l.writing = false
	l.synced = l.batch - 1
	l.err = err
	l.turn.Broadcast()
}
