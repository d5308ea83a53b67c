package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/tarn-kv/tarn/store/vfs"
)

const (
	reserveName  = "reserve"
	reserveChunk = 1 << 20
)

// UseReserve removes the reserve, so that frames of deletes and compactions
// find room on a full file system. It does nothing if there is none.
func (l *Log) UseReserve() error {
	l.reserving.Lock()
	defer l.reserving.Unlock()
	err := l.o.FS.Remove(l.reservePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = l.o.FS.SyncDir(l.o.Dir)
	}
	if err != nil {
		return fmt.Errorf("use the reserve of the write-ahead log: %w", err)
	}
	return nil
}

// RestoreReserve makes the reserve again where it is missing. It fails with
// ErrNoSpace, leaving nothing behind, if there is no room for it.
func (l *Log) RestoreReserve() error {
	l.reserving.Lock()
	defer l.reserving.Unlock()
	err := l.makeReserve()
	if err == nil {
		err = l.o.FS.SyncDir(l.o.Dir)
	}
	if vfs.IsNoSpace(err) {
		return fmt.Errorf("%w: restore the reserve: %w", ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("restore the reserve of the write-ahead log: %w", err)
	}
	return nil
}

// prepareReserve makes the reserve when the log is opened. A file system that
// has no room for it does not keep the store down.
func (l *Log) prepareReserve() error {
	l.reserving.Lock()
	defer l.reserving.Unlock()
	err := l.makeReserve()
	if vfs.IsNoSpace(err) {
		l.o.Logger.Warn("no room for the reserve of the write-ahead log: deletes may be refused when the file system is full; free some space",
			slog.Int64("bytes", l.o.ReserveBytes), slog.String("error", err.Error()))
		return nil
	}
	return err
}

// makeReserve brings the reserve to the size that is set, which can be none.
func (l *Log) makeReserve() error {
	size, err := fileSize(l.o.FS, l.reservePath())
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case missing && l.o.ReserveBytes <= 0, !missing && size == l.o.ReserveBytes:
		return nil
	case !missing:
		if err := l.o.FS.Remove(l.reservePath()); err != nil {
			return err
		}
		if l.o.ReserveBytes <= 0 {
			return nil
		}
	}
	f, err := l.o.FS.Create(l.reservePath())
	if err != nil {
		return err
	}
	if err = errors.Join(l.fillReserve(f), f.Close()); err != nil {
		return errors.Join(err, l.o.FS.Remove(l.reservePath()))
	}
	return nil
}

// fillReserve makes the file take up its space, also where zeros or equal
// blocks would be compressed away.
func (l *Log) fillReserve(f vfs.File) error {
	if err := f.Preallocate(l.o.ReserveBytes); err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	chunk := make([]byte, min(reserveChunk, l.o.ReserveBytes))
	for at := size; at < l.o.ReserveBytes; at += int64(len(chunk)) {
		chunk = chunk[:min(int64(len(chunk)), l.o.ReserveBytes-at)]
		rand.Read(chunk)
		if _, err := f.WriteAt(chunk, at); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (l *Log) reservePath() string { return filepath.Join(l.o.Dir, reserveName) }
