package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Layout of a segment, as in the comments of store/wal.
const (
	segmentHeaderLen = 64
	frameHeaderLen   = 16
	frameAlign       = 8
)

// cutLog overwrites the last frames of a log with zeros, as if they had never been
// written. The server must not be running.
func cutLog(dir string, frames int) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err == nil && len(names) == 0 {
		err = errors.New("there is no segment")
	}
	if err != nil {
		return fmt.Errorf("cut the log in %s: %w", dir, err)
	}
	name := slices.Max(names)
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("cut the log: %w", err)
	}
	begins := frameOffsets(content)
	if len(begins) <= frames {
		return fmt.Errorf("cut the log: %s has %d frames, too few to take %d away", name, len(begins), frames)
	}
	clear(content[begins[len(begins)-frames]:])
	// Written in place: the file may have more than one name.
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return fmt.Errorf("cut the log: %w", err)
	}
	return nil
}

// frameOffsets returns where the frames of a segment begin.
func frameOffsets(segment []byte) (begins []int) {
	at := segmentHeaderLen
	for at+frameHeaderLen <= len(segment) && binary.LittleEndian.Uint64(segment[at+8:]) != 0 {
		begins = append(begins, at)
		at += frameHeaderLen + int(binary.LittleEndian.Uint32(segment[at:]))
		at = (at + frameAlign - 1) / frameAlign * frameAlign
	}
	return begins
}
