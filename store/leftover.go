package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/store/vfs"
)

// Leftovers lists, by their paths, what a restore that was ended before its exchange has left in a data
// directory. It counts for nothing, takes space, and the next restore removes it. While a restore runs
// it is that one's.
func Leftovers(dir string) []string {
	names, err := vfs.OS.List(dir)
	if err != nil || slices.Contains(names, RestoreJournal) {
		return nil
	}
	var left []string
	for _, name := range []string{stagingName, RestoreJournal + ".new"} {
		if slices.Contains(names, name) {
			left = append(left, filepath.Join(dir, name))
		}
	}
	return left
}

// noteLeftovers says what is left of a restore.
func (r *CheckReport) noteLeftovers(dir string) {
	if left := Leftovers(dir); len(left) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s is left of a restore that did not come to its end; it is not used and takes space: remove it, or restore again", strings.Join(left, " and ")))
	}
}
