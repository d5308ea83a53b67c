// Package wal is the write-ahead log: the durable copy of every change since
// the last checkpoint of the tree.
//
// A frame is one batch of changes that was written and synced as one. Frames
// are numbered without a gap over the whole life of a store. They lie in
// segment files, each named after the number of its first frame. See DESIGN.md.
package wal

import (
	"log/slog"
	"sync"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// DefaultSegmentSize is the default of Options.SegmentSize in bytes.
const DefaultSegmentSize = 8 << 20

// Options configure a Log. The zero value of each optional field means its default.
type Options struct {
	FS     vfs.FS       // default vfs.OS
	Dir    string       // the directory of the segments; made if missing
	Logger *slog.Logger // default: discards
	// StoreID is written into every segment and compared on open: a segment
	// of another store is refused. Only if ReadOnly is set may it be zero, and
	// then means the ID of whatever store the segments are of.
	StoreID [16]byte
	// SegmentSize is the size in bytes after which a new segment is begun
	// (default DefaultSegmentSize). A frame is never split, so a segment can
	// be larger.
	SegmentSize int64
	// AfterSeq is the sequence number up to which the tree already holds
	// everything: frames up to it are not replayed, and may be missing.
	AfterSeq uint64
	// MustReach refuses, with ErrCorrupt, a log that ends before AfterSeq or is
	// missing: what it held after that is lost then.
	MustReach bool
	// ReadOnly opens for checking: nothing is created, cut or preallocated.
	ReadOnly bool
	// ReserveBytes is the size of a file kept only to be removed by UseReserve
	// when the file system is full (default 0: none).
	ReserveBytes int64
	// ObserveSync, if set, is called after each fdatasync with its duration.
	ObserveSync func(time.Duration)
	// SlowSync is the duration of a sync above which a warning is logged
	// (default 1 s).
	SlowSync time.Duration
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.SegmentSize <= 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.SlowSync <= 0 {
		o.SlowSync = time.Second
	}
	return o
}

// Log is an open write-ahead log. AppendFrame is called by one goroutine
// at a time; the other methods are safe for concurrent use, except
// that Close waits for nobody.
type Log struct {
	o Options

	// Owned by the goroutine that appends.
	file   vfs.File // the last segment, nil if the next frame begins a new one
	end    int64    // where in file the next frame goes, a multiple of frameAlign
	frames int      // frames in file
	salt   uint32   // of file

	trimming  sync.Mutex // held while segments are removed
	reserving sync.Mutex // held while the reserve is made or removed

	mu     sync.Mutex // guards what follows; held for no I/O
	segs   []segment  // oldest first
	last   uint64     // sequence number of the newest frame
	err    error      // why the log takes no more frames
	closed bool
}

// LastSeq is the sequence number of the newest frame that is durable, or
// Options.AfterSeq if that is larger. 0 means that there was none ever.
func (l *Log) LastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Size is the size of all segments in bytes, with what is preallocated,
// without the reserve.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.segs {
		n += s.size
	}
	return n
}

// Close closes the log. What was acknowledged is durable already. Appends
// after it fail with ErrClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	if l.err == nil {
		l.err = ErrClosed
	}
	l.mu.Unlock()
	return l.closeFile()
}

// closeFile closes the segment that frames are appended to, if any.
func (l *Log) closeFile() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// state is nil while the log takes frames.
func (l *Log) state() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
