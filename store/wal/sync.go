package wal

import (
	"log/slog"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// sync makes the file's content durable, and tells how long that took.
func (l *Log) sync(f vfs.File, first uint64) error {
	start := time.Now()
	err := f.Sync()
	took := time.Since(start)
	if l.o.ObserveSync != nil {
		l.o.ObserveSync(took)
	}
	if took > l.o.SlowSync {
		l.o.Logger.Warn("sync of the write-ahead log was slow: every write waits for it; look at the disk's load",
			slog.Duration("took", took), slog.String("file", l.o.path(first)))
	}
	return err
}
