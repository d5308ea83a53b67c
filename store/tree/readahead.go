package tree

import (
	"encoding/binary"
	"os"
)

const (
	readAheadChunk = 1 << 20

	// readAheadLeast is the size of a file from which reading ahead is worth a
	// goroutine.
	readAheadLeast = 4 << 20
)

// readAhead reads the first size bytes of the file in order, so that they are in
// memory when its caller, who is about to walk all pages in another order, gets
// to them. bbolt tells the kernel not to read ahead by itself, and a walk of a
// cold file page by page takes ten times as long. stop ends it and
// must be called.
func (h *handle) readAhead(size int64) (stop func()) { return readAhead(h.file, size) }

func readAhead(f *os.File, size int64) (stop func()) {
	if size < readAheadLeast {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, readAheadChunk)
		for off := int64(0); off < size; off += readAheadChunk {
			select {
			case <-quit:
				return
			default:
			}
			if _, err := f.ReadAt(buf, off); err != nil {
				return // who walks the pages meets it too
			}
			if !looksEmpty(buf) {
				continue
			}
			if data, ok := nextData(f, off); ok && data > off {
				off += (data-off)/readAheadChunk*readAheadChunk - readAheadChunk
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// looksEmpty tells whether no page begins in b: each begins with its number.
func looksEmpty(b []byte) bool {
	for ; len(b) > 0; b = b[minPageSize:] {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}
