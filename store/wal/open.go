package wal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/tarn-kv/tarn/store/vfs"
)

// Open opens the log in Options.Dir, or begins one, and calls replay for each
// frame after Options.AfterSeq, in order. replay may keep the payload: each
// has memory of its own. When Open returns, all that was replayed is durable.
//
// A torn last frame, the trace of a crash within a write that was never
// acknowledged, is cut off. Open fails with ErrCorrupt, ErrForeign or
// ErrVersion, having changed nothing, if the segments are not a log without a
// gap from AfterSeq on; and with replay's error if there is one.
func Open(o Options, replay func(seq uint64, payload []byte) error) (*Log, error) {
	o = o.withDefaults()
	if o.StoreID == [16]byte{} && !o.ReadOnly {
		return nil, errors.New("write-ahead log: open: no store ID given")
	}
	if !o.ReadOnly {
		if err := o.FS.MkdirAll(o.Dir); err != nil {
			return nil, fmt.Errorf("write-ahead log: %w", err)
		}
	}
	segs, unfinished, err := listSegments(o)
	if err != nil {
		return nil, err
	}
	l := &Log{o: o, segs: segs, last: o.AfterSeq}
	found, tail, err := l.replayAll(replay)
	if err == nil && o.MustReach {
		err = o.reached(len(segs), found.next-1)
	}
	if err != nil {
		return nil, err
	}
	if o.ReadOnly {
		if len(segs) > 0 {
			l.last = max(o.AfterSeq, found.next-1)
		}
		l.err = ErrReadOnly
		return l, nil
	}
	if err := l.prepare(found, tail, unfinished); err != nil {
		return nil, errors.Join(err, l.closeFile())
	}
	return l, nil
}

// reached tells whether a log that ends at frame last can be the whole log.
func (o Options) reached(segments int, last uint64) error {
	switch {
	case o.AfterSeq == 0 || segments > 0 && last >= o.AfterSeq:
		return nil
	case segments == 0:
		return &CorruptError{File: o.Dir, Reason: fmt.Sprintf("the log is missing, but the tree was written from it up to frame %d (a restored snapshot is started with --allow-missing-log)", o.AfterSeq)}
	default:
		return &CorruptError{File: o.Dir, Reason: fmt.Sprintf("the log ends at frame %d, but the tree was written from it up to frame %d", last, o.AfterSeq)}
	}
}

// replayAll reads the segments. It returns what it found in the last one, and
// that one's last frame.
func (l *Log) replayAll(replay func(seq uint64, payload []byte) error) (found scan, tail []byte, err error) {
	each := func(seq uint64, payload []byte) error {
		if seq <= l.o.AfterSeq {
			return nil
		}
		if err := replay(seq, bytes.Clone(payload)); err != nil {
			return fmt.Errorf("write-ahead log: replay frame %d: %w", seq, err)
		}
		return nil
	}
	var buf []byte
	next := uint64(1)
	for i := range l.segs {
		seg := &l.segs[i]
		file := l.o.path(seg.first)
		if i+1 < len(l.segs) && l.segs[i+1].first <= l.o.AfterSeq+1 {
			// All of it is in the tree, so it waits only to be trimmed.
			seg.size, err = fileSize(l.o.FS, file)
			if err != nil {
				return found, nil, err
			}
			next = l.segs[i+1].first
			continue
		}
		if err := checkChain(file, next, seg.first, l.o.AfterSeq); err != nil {
			return found, nil, err
		}
		buf, err = readSegment(l.o, file, buf)
		if err != nil {
			return found, nil, err
		}
		found, err = scanSegment(file, buf, l.o.StoreID, seg.first, i+1 == len(l.segs), each)
		if err != nil {
			return found, nil, err
		}
		seg.size, next = found.size, found.next
	}
	if found.frames > 0 {
		tail = buf[found.lastFrom:min(found.end, found.size)]
	}
	return found, tail, nil
}

// prepare makes the log ready for the frame after the last one: what is there
// becomes durable, what is torn goes.
func (l *Log) prepare(found scan, tail []byte, unfinished []string) error {
	for _, name := range unfinished {
		if err := l.o.FS.Remove(filepath.Join(l.o.Dir, name)); err != nil {
			return fmt.Errorf("write-ahead log: %w", err)
		}
	}
	if len(l.segs) > 0 {
		if err := l.prepareLast(found, tail); err != nil {
			return fmt.Errorf("write-ahead log: prepare %s: %w", l.o.path(l.activeFirst()), err)
		}
	}
	if err := l.prepareReserve(); err != nil {
		return fmt.Errorf("write-ahead log: %w", err)
	}
	// A process that was killed can have left names that are not durable.
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return fmt.Errorf("write-ahead log: %w", err)
	}
	return nil
}

// prepareLast makes the last segment durable up to its last good frame, and
// the one to append to, unless the tree is ahead of it.
func (l *Log) prepareLast(found scan, tail []byte) error {
	seg := &l.segs[len(l.segs)-1]
	f, err := l.o.FS.Open(l.o.path(seg.first))
	if err != nil {
		return err
	}
	l.file, l.end, l.frames, l.salt = f, found.end, found.frames, found.salt
	if found.torn > 0 {
		l.o.Logger.Info("cut a torn frame off the end of the write-ahead log, as a crash in a write leaves it",
			slog.Uint64("frame", found.next), slog.Int64("bytes", found.torn),
			slog.String("file", l.o.path(seg.first)))
		err = l.cutTail(f, seg.first, found.end)
	} else {
		err = l.resync(f, seg.first, tail, found.lastFrom)
	}
	if err != nil {
		return err
	}
	if seg.size, err = f.Size(); err != nil {
		return err
	}
	if found.next-1 < l.o.AfterSeq {
		return l.closeFile()
	}
	l.last = found.next - 1
	return nil
}

// resync makes the last frame durable. A process that was killed, or that
// stopped because a sync had failed, can have left it in memory only, and in
// the second case the system no longer knows it as unwritten: so it is
// written once more, byte for byte.
func (l *Log) resync(f vfs.File, first uint64, frame []byte, at int64) error {
	if len(frame) > 0 {
		if _, err := f.WriteAt(frame, at); err != nil && !vfs.IsNoSpace(err) {
			return err
		}
	}
	return l.sync(f, first)
}

func fileSize(fs vfs.FS, file string) (int64, error) {
	f, err := fs.OpenRead(file)
	if err != nil {
		return 0, fmt.Errorf("write-ahead log: %w", err)
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		return 0, fmt.Errorf("write-ahead log: %w", err)
	}
	return n, nil
}
