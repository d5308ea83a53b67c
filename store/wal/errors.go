package wal

import (
	"errors"
	"fmt"
)

// Errors of Open and Check.
var (
	// ErrCorrupt is returned (as a *CorruptError) when the segments contradict
	// themselves in a way that no crash explains. Nothing was changed.
	ErrCorrupt = errors.New("write-ahead log is corrupt")
	// ErrForeign is returned when a segment belongs to another store.
	ErrForeign = errors.New("write-ahead log belongs to another store")
	// ErrVersion is returned when a segment has a format that this program
	// does not know.
	ErrVersion = errors.New("write-ahead log has an unknown format version")
)

// Errors of an open log.
var (
	// ErrNoSpace is returned when the file system is full. Nothing of the frame
	// was kept, and the log can be used further.
	ErrNoSpace = errors.New("no space left for the write-ahead log")
	// ErrFailed is returned when a write or a sync failed. What the disk holds
	// of the last frame is not known, so the log takes no more frames: only
	// opening it again tells.
	ErrFailed = errors.New("write-ahead log has failed")
	// ErrTooLarge is returned when a payload is larger than MaxPayload.
	ErrTooLarge = errors.New("payload is too large for the write-ahead log")
	// ErrReadOnly is returned when a log opened with ReadOnly is written to.
	ErrReadOnly = errors.New("write-ahead log is open for reading only")
	// ErrClosed is returned when the log is closed.
	ErrClosed = errors.New("write-ahead log is closed")
)

// CorruptError tells what is damaged and where. It matches ErrCorrupt.
type CorruptError struct {
	File   string // path of the segment
	Offset int64  // byte in File where the damage begins
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: %s at byte %d: %s", ErrCorrupt, e.File, e.Offset, e.Reason)
}

// Is makes a CorruptError match ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
