package wal

import (
	"errors"
	"fmt"
	"io"
)

// scan is what reading one segment has found.
type scan struct {
	salt     uint32
	size     int64  // bytes of the file
	end      int64  // where the next frame would go
	lastFrom int64  // where the last frame begins
	next     uint64 // the number after the last frame's
	frames   int
	torn     int64 // bytes from end on that are not all zeros, as a crash within a write leaves them
}

// scanSegment goes through the frames of a segment's content. Only in the last
// segment may the frames end with a torn one.
func scanSegment(file string, content []byte, id [16]byte, first uint64, isLast bool,
	each func(seq uint64, payload []byte) error) (scan, error) {
	salt, err := checkHeader(file, content, id, first)
	if err != nil {
		return scan{}, err
	}
	s := scan{salt: salt, size: int64(len(content)), end: headerLen, next: first}
	for s.end < s.size && frameSeq(content[s.end:]) == s.next {
		frame, ok := parseFrame(content[s.end:], salt)
		if !ok {
			break
		}
		if each != nil {
			if err := each(s.next, frame[FrameHeader:]); err != nil {
				return s, err
			}
		}
		s.lastFrom = s.end
		s.end = align(s.end + int64(len(frame)))
		s.next++
		s.frames++
	}
	return s, s.checkRest(file, content, isLast)
}

// checkRest tells a torn last frame from damage, in what follows the good frames.
func (s *scan) checkRest(file string, content []byte, isLast bool) error {
	if s.end >= s.size {
		return nil
	}
	rest := content[s.end:]
	s.torn = int64(usedLen(rest))
	if s.torn == 0 {
		return nil
	}
	if at := findFrame(rest, s.next, s.salt); at >= 0 {
		return &CorruptError{File: file, Offset: s.end, Reason: fmt.Sprintf(
			"frame %d is damaged or missing, but frame %d follows at byte %d",
			s.next, frameSeq(rest[at:]), s.end+at)}
	}
	if !isLast {
		return &CorruptError{File: file, Offset: s.end, Reason: fmt.Sprintf(
			"frame %d is damaged, but a later segment exists", s.next)}
	}
	return nil
}

// usedLen is the length of b without the zeros at its end.
func usedLen(b []byte) int {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return n
}

// checkChain checks that the segment that begins with the frame first follows
// on the frames before next. Frames up to after are in the tree and may be missing.
func checkChain(file string, next, first, after uint64) error {
	switch {
	case first < next:
		return &CorruptError{File: file, Reason: fmt.Sprintf(
			"it begins with frame %d, which the segment before holds already", first)}
	case first > next && first-1 > after:
		return &CorruptError{File: file, Reason: fmt.Sprintf(
			"frames %d to %d are missing before it", max(next, after+1), first-1)}
	}
	return nil
}

// largest is the size of a segment that holds a single frame of the largest size,
// or of an ordinary one if that is set to be larger still.
func (o Options) largest() int64 {
	return max(o.SegmentSize, align(headerLen+FrameHeader+MaxPayload))
}

// readSegment reads a whole segment, into buf if it is large enough.
func readSegment(o Options, file string, buf []byte) ([]byte, error) {
	f, err := o.FS.OpenRead(file)
	if err != nil {
		return nil, fmt.Errorf("write-ahead log: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("write-ahead log: %w", err)
	}
	if size > o.largest() {
		return nil, &CorruptError{File: file, Offset: o.largest(), Reason: "the file is larger than a segment can be"}
	}
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	n, err := f.ReadAt(buf[:size], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("write-ahead log: read %s: %w", file, err)
	}
	return buf[:n], nil
}
