package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tarn-kv/tarn/store/vfs"
)

// AppendFrame adds one frame and returns its sequence number when the frame is
// durable. The payload begins at byte FrameHeader of buf, and the bytes before it
// are overwritten. The log does not keep buf.
//
// It fails with ErrNoSpace if the file system is full: nothing of the frame
// was kept and the log stays usable. After any other failure to write or sync
// it fails with ErrFailed, then and ever after.
func (l *Log) AppendFrame(buf []byte) (seq uint64, err error) {
	l.mu.Lock()
	seq, err = l.last+1, l.err
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if len(buf) > FrameHeader+MaxPayload {
		return 0, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(buf)-FrameHeader, MaxPayload)
	}
	if err := l.makeRoom(int64(len(buf)), seq); err != nil {
		return 0, err
	}
	first := l.activeFirst()
	sealFrame(buf, seq, l.salt)
	if _, err := l.file.WriteAt(buf, l.end); err != nil {
		if vfs.IsNoSpace(err) {
			return 0, l.cutBack(err)
		}
		return 0, l.fail(err)
	}
	if err := l.sync(l.file, first); err != nil {
		return 0, l.fail(err)
	}
	l.end = align(l.end + int64(len(buf)))
	l.frames++
	l.mu.Lock()
	l.last = seq
	active := &l.segs[len(l.segs)-1]
	active.size = max(active.size, l.end)
	l.mu.Unlock()
	return seq, nil
}

func (l *Log) activeFirst() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segs[len(l.segs)-1].first
}

// makeRoom begins a new segment, with the frame seq as its first, if there is
// none or if a frame of need bytes would make it too large.
func (l *Log) makeRoom(need int64, seq uint64) error {
	if l.file != nil && (l.frames == 0 || l.end+need <= l.o.SegmentSize) {
		return nil
	}
	f, size, err := l.createSegment(seq, need)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.segs = append(l.segs, segment{first: seq, size: size})
	l.mu.Unlock()
	// Everything in the old segment is synced: an error of its Close says nothing.
	_ = l.closeFile()
	_, l.salt = segmentHeader(l.o.StoreID, seq)
	l.file, l.end, l.frames = f, headerLen, 0
	return nil
}

// createSegment makes a segment that is durable in content and name. It gets
// its name last, so a crash leaves no segment without a header.
func (l *Log) createSegment(first uint64, need int64) (vfs.File, int64, error) {
	name := l.o.path(first)
	temp := filepath.Join(l.o.Dir, fmt.Sprintf("%016x%s", first, newSuffix))
	f, err := l.o.FS.Create(temp)
	if err == nil {
		err = l.fillSegment(f, first, need)
		if err != nil {
			f.Close()
		}
	}
	if err == nil {
		if err = l.o.FS.Rename(temp, name); err != nil {
			f.Close()
		}
	}
	if vfs.IsNoSpace(err) {
		rmErr := l.removeUnfinished(temp)
		if rmErr != nil {
			return nil, 0, l.fail(errors.Join(err, rmErr))
		}
		return nil, 0, fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if err != nil {
		return nil, 0, l.fail(err)
	}
	size, err := f.Size()
	if err == nil {
		err = l.o.FS.SyncDir(l.o.Dir)
	}
	if err != nil {
		f.Close()
		return nil, 0, l.fail(err)
	}
	return f, size, nil
}

// fillSegment preallocates a new segment, for at least one frame of need
// bytes, and writes its header.
func (l *Log) fillSegment(f vfs.File, first uint64, need int64) error {
	err := f.Preallocate(max(l.o.SegmentSize, align(headerLen+need)))
	if vfs.IsNoSpace(err) {
		err = f.Truncate(0) // what room there is will do for some frames
	}
	if err != nil {
		return err
	}
	header, _ := segmentHeader(l.o.StoreID, first)
	if _, err := f.WriteAt(header, 0); err != nil {
		return err
	}
	return l.sync(f, first)
}

// cutBack removes what a write that ran out of space has left behind.
func (l *Log) cutBack(cause error) error {
	if err := l.cutTail(l.file, l.activeFirst(), l.end); err != nil {
		return l.fail(errors.Join(cause, err))
	}
	size, err := l.file.Size()
	if err != nil {
		return l.fail(errors.Join(cause, err))
	}
	l.mu.Lock()
	l.segs[len(l.segs)-1].size = size
	l.mu.Unlock()
	return fmt.Errorf("%w: %w", ErrNoSpace, cause)
}

// cutTail makes everything from end on read as zeros, durably. The space that
// was preallocated there is given back and asked for again, which on a full
// file system can fail: the segment then grows with its frames.
func (l *Log) cutTail(f vfs.File, first uint64, end int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	// The last frame's padding need not be there, and cutting must not extend.
	if size > end {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	if end < l.o.SegmentSize {
		if err := f.Preallocate(l.o.SegmentSize); err != nil && !vfs.IsNoSpace(err) {
			return err
		}
	}
	return l.sync(f, first)
}

// fail ends the log's life as a writer and returns the error that it answers
// with from now on.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("%w and takes no more writes; see to the disk, then restart: %w", ErrFailed, cause)
	}
	return l.err
}

// removeUnfinished removes a segment that did not get its name, if it is there.
func (l *Log) removeUnfinished(temp string) error {
	err := l.o.FS.Remove(temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
