package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// write is a write that was acknowledged.
type write struct {
	revision   int64
	key, value string
}

// journal keeps what was acknowledged in a file, one line for each, so that it can be
// compared after the machine lost its power.
type journal struct {
	mu    sync.Mutex
	file  *os.File
	count int
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return &journal{file: f}, err
}

// add is called after the answer came, and before anything else is done about it.
func (j *journal) add(w write) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	_, err := fmt.Fprintf(j.file, "%d %s %s\n", w.revision, w.key, w.value)
	return err
}

// readJournal returns the writes by revision. A file that is not there holds none.
func readJournal(path string) (map[int64]write, error) {
	writes := map[int64]write{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writes, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var w write
		if _, err := fmt.Sscan(lines.Text(), &w.revision, &w.key, &w.value); err != nil {
			return nil, fmt.Errorf("%s: the line %q is not one of a journal: %w", path, lines.Text(), err)
		}
		if other, ok := writes[w.revision]; ok {
			return nil, fmt.Errorf("revision %d was acknowledged twice, for %s and for %s", w.revision, other.key, w.key)
		}
		writes[w.revision] = w
	}
	return writes, lines.Err()
}
