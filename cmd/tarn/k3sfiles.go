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

	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// fileState is how a file that we would write compares with the one that is there.
type fileState string

const (
	fileNew     fileState = "new"
	fileSame    fileState = "unchanged"
	fileChanged fileState = "changed" // ours, of other settings or an older version
	fileEdited  fileState = "edited"  // ours, and changed by hand since
	fileForeign fileState = "foreign" // of somebody else
	fileRemoved fileState = "removed" // ours, and no longer wanted
	fileAbsent  fileState = "absent"  // not there, and not wanted
	setupMark             = "# Made by tarn; checksum of the rest: "
)

// setupModeOf is the mode of each file of tarn k3s setup: they hold no secrets, k3s' own file with the token is another one.
func setupModeOf(string) fs.FileMode { return 0o644 }

// setupFile is one file of a setup; the JSON names are stable.
type setupFile struct {
	Path    string    `json:"path"`           // absolute
	Link    string    `json:"link,omitempty"` // where a symbolic link at Path leads; it is replaced itself, never written through
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

// compareFile finds out what writing text to a path, or removing it with an empty text, would do. A symbolic link
// is of somebody else, whatever it leads to, unless there is nothing to change.
func compareFile(root fs.FS, path, text string) (setupFile, error) {
	f := setupFile{Path: path}
	if text != "" {
		f.Content = marked(text)
	}
	if to, err := fs.ReadLink(root, rootPath(path)); err == nil {
		f.Link = to
	}
	before, err := fs.ReadFile(root, rootPath(path))
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.Link != "":
		f.State = fileForeign
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		f.State = fileNew
		if text == "" {
			f.State = fileAbsent
		}
		return f, nil
	case err != nil:
		f.State = fileUnseen
		return f, fmt.Errorf("read %s: %w", path, withAdvice(withoutPath(err), nodeconf.MayReadAdvice()))
	}
	f.before = string(before)
	f.State = markedState(f.before)
	switch {
	case f.before == f.Content:
		f.State = fileSame
	case f.Link != "":
		f.State = fileForeign
	case f.State == fileChanged && text == "":
		f.State = fileRemoved
	}
	return f, nil
}

// withoutPath is an error without the path that it names: one inside of a root's fs.FS, or of a temporary file.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// text is the state for a person; "" for those on which commands differ.
func (s fileState) text() string {
	switch s {
	case fileNew:
		return "to be made"
	case fileSame:
		return "as it should be"
	case fileChanged:
		return "to be changed"
	case fileRemoved:
		return "to be removed"
	case fileAbsent:
		return "not there"
	case fileEdited:
		return "changed by hand since it was made; only --force touches it"
	}
	return ""
}

// name is the path for a person, and where a link there leads.
func (f setupFile) name() string {
	if f.Link == "" {
		return f.Path
	}
	return f.Path + " (a symbolic link to " + f.Link + ")"
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

// writeSetupFiles writes and removes files below root, in their order. A file of somebody else is only replaced with
// force. A symbolic link is replaced or removed itself.
func writeSetupFiles(root string, files []setupFile, mode func(path string) fs.FileMode, force bool) error {
	var done []string
	for _, f := range files {
		if !f.changes() || (f.State == fileEdited || f.State == fileForeign) && !force {
			continue
		}
		path := filepath.Join("/", root, f.Path)
		var err error
		if f.Content == "" {
			if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		} else {
			err = writeNewFile(path, []byte(f.Content), mode(f.Path))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w; %s", f.name(), withAdvice(withoutPath(err), mayWriteAdvice()), writtenSoFar(done))
		}
		done = append(done, f.Path)
	}
	return nil
}

// writtenSoFar says what a setup has done that broke off.
func writtenSoFar(done []string) string {
	if len(done) == 0 {
		return "nothing was written"
	}
	return "done is " + strings.Join(done, ", ") + ", and running it again goes on"
}

// mayWriteAdvice is what to do where this user may not write.
func mayWriteAdvice() string {
	if os.Geteuid() == 0 {
		return "root may not either: see how the file system is mounted, and lsattr"
	}
	return "run the command as root (sudo)"
}
