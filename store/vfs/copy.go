package vfs

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyStep is how many bytes are copied between two looks at the context.
const copyStep = 8 << 20

// CopyFile makes dst, which must not exist, a durable copy of the regular file src; its name is durable
// after SyncDir. Holes stay holes. Where both are on one file system that can share blocks, no data is
// copied. progress, if not nil, is called with the bytes done and their number.
//
// What was made is left behind with an error.
func CopyFile(ctx context.Context, files FS, dst, src string, progress func(done, total int64)) (err error) {
	from, err := OpenRegular(src, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := files.Create(dst)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	size := info.Size()
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if progress != nil {
			progress(at, size)
		}
		begin, end := nextExtent(from, at, size)
		if end = min(end, begin+copyStep); begin < end {
			if err := copyRange(to, from, begin, end-begin); err != nil {
				return err
			}
		}
		at = end
	}
	if got, err := to.Size(); err != nil {
		return err
	} else if got != size { // a hole at the end
		if err := to.Truncate(size); err != nil {
			return err
		}
	}
	return to.Sync()
}

// nextExtent finds the data at or after a place; without any it is empty, at the end.
func nextExtent(f *os.File, at, size int64) (begin, end int64) {
	begin, err := f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size
	case err != nil: // the file system does not tell
		return at, size
	}
	if end, err = f.Seek(begin, unix.SEEK_HOLE); err != nil || end <= begin {
		end = size
	}
	return begin, min(end, size)
}

// copyRange copies n bytes at off to the same place.
func copyRange(to File, from *os.File, off, n int64) error {
	if real, ok := to.(*osFile); ok {
		// Package io leaves this to the kernel, which shares blocks where it can.
		if _, err := from.Seek(off, io.SeekStart); err != nil {
			return err
		}
		if _, err := real.Seek(off, io.SeekStart); err != nil {
			return err
		}
		done, err := io.Copy(real.File, &io.LimitedReader{R: from, N: n})
		if err == nil && done < n {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	buf := make([]byte, min(n, 1<<20))
	for n > 0 {
		part := buf[:min(n, int64(len(buf)))]
		if _, err := from.ReadAt(part, off); err != nil {
			return err
		}
		if _, err := to.WriteAt(part, off); err != nil {
			return err
		}
		off, n = off+int64(len(part)), n-int64(len(part))
	}
	return nil
}
