package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fileState is how a file that we would write compares with the one that is there.
type fileState string

const (
	fileNew       fileState = "new"
	fileSame      fileState = "unchanged"
	fileChanged   fileState = "changed" // ours, of other settings or an older version
	fileEdited    fileState = "edited"  // ours, and changed by hand since
	fileForeign   fileState = "foreign" // of somebody else
	fileRemoved   fileState = "removed" // ours, and no longer wanted
	fileAbsent    fileState = "absent"  // not there, and not wanted
	setupMark               = "# Made by tarn; checksum of the rest: "
	setupFileMode           = fs.FileMode(0o644) // no secrets: k3s' own file with the token is another one
)

// setupFile is one file of a setup; the JSON names are stable.
type setupFile struct {
	Path    string    `json:"path"` // absolute
	State   fileState `json:"state"`
	Content string    `json:"content"` // with the mark; "" to remove it
	before  string
}

// marked puts the mark above a text, by which a change by hand is noticed.
func marked(text string) string {
	sum := sha256.Sum256([]byte(text))
	return setupMark + hex.EncodeToString(sum[:8]) + "\n" + text
}

// markedState tells whether a text is ours and as we wrote it.
func markedState(text string) fileState {
	_, rest, _ := strings.Cut(text, "\n")
	switch {
	case !strings.HasPrefix(text, setupMark):
		return fileForeign
	case marked(rest) != text:
		return fileEdited
	}
	return fileChanged
}

// compareFile finds out what writing text to a path, or removing it with an empty text, would do.
func compareFile(root fs.FS, path, text string) (setupFile, error) {
	f := setupFile{Path: path}
	if text != "" {
		f.Content = marked(text)
	}
	before, err := fs.ReadFile(root, rootPath(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.State = fileNew
		if text == "" {
			f.State = fileAbsent
		}
		return f, nil
	case err != nil:
		return f, fmt.Errorf("read %s: %w", path, withAdvice(err, "run the command as root (sudo)"))
	}
	f.before = string(before)
	f.State = markedState(f.before)
	switch {
	case f.before == f.Content:
		f.State = fileSame
	case f.State == fileChanged && text == "":
		f.State = fileRemoved
	}
	return f, nil
}

func (f setupFile) changes() bool { return f.State != fileSame && f.State != fileAbsent }

func anyChange(files []setupFile) bool {
	for _, f := range files {
		if f.changes() {
			return true
		}
	}
	return false
}

// applySetupFiles writes and removes files below root. A file of somebody else is only replaced with force.
func applySetupFiles(root string, files []setupFile, force bool) error {
	for _, f := range files {
		if !f.changes() || (f.State == fileEdited || f.State == fileForeign) && !force {
			continue
		}
		path := filepath.Join(root, f.Path)
		var err error
		if f.Content == "" {
			err = os.Remove(path)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = replaceFile(path, []byte(f.Content))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w; what is shown above it is written, and running it again goes on", f.Path, withAdvice(err, "run the command as root (sudo)"))
		}
	}
	return nil
}
