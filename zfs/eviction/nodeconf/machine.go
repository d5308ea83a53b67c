// Package nodeconf reads how the kubelet of a node is configured, the way that the kubelet and k3s
// put their configuration together: flags in units, k3s' own configuration, the file of --config, the
// directory of --config-dir. It changes nothing.
package nodeconf

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Machine is the machine whose configuration is read.
type Machine struct {
	// Root is the machine's file system from its root directory on. A symbolic link in it leads where
	// Root itself lets it lead.
	Root fs.FS
	// Home is the absolute path of the home directory in which a rootless k3s is looked for; "" for none.
	Home string
	// Run runs a program of the machine and returns what it prints; nil if none can be run, as for the
	// mounted disk of another machine.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// MachineAt is the machine whose root directory is dir; "/" is this machine. It runs no programs. Of its files
// only regular ones of at most 1 MiB can be read.
func MachineAt(dir string) Machine { return Machine{Root: regularFiles{os.DirFS(dir)}} }

// inside is an absolute path as a path of Machine.Root.
func inside(file string) string {
	if name := strings.TrimPrefix(path.Clean("/"+file), "/"); name != "" {
		return name
	}
	return "."
}

// there tells whether a file or directory exists. What may not be looked at does.
func (m Machine) there(file string) bool {
	_, err := fs.Stat(m.Root, inside(file))
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// reader reads files and notes what is worth telling, each thing once.
type reader struct {
	Machine
	notes []Note
}

func (r *reader) note(n Note) {
	for _, has := range r.notes {
		if has == n {
			return
		}
	}
	r.notes = append(r.notes, n)
}

// file reads a file. ok is false if it is not there or can not be read; the second is noted.
func (r *reader) file(name string) (text []byte, ok bool) {
	text, err := fs.ReadFile(r.Root, inside(name))
	if err != nil {
		r.unreadable(name, err)
		return nil, false
	}
	return text, true
}

// dir lists a directory in the order of names. ok is as for file.
func (r *reader) dir(name string) (entries []fs.DirEntry, ok bool) {
	entries, err := fs.ReadDir(r.Root, inside(name))
	if err != nil {
		r.unreadable(name, err)
		return nil, false
	}
	return entries, true
}

// unreadable notes why something that may be there can not be read.
func (r *reader) unreadable(name string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, fs.ErrPermission):
		r.note(Note{Kind: Unreadable, File: name, Text: "it can not be read by this user, so what it sets is unknown", Fix: MayReadAdvice()})
	default:
		r.note(Note{Kind: Unreadable, File: name, Text: "it can not be read: " + reason(err) + ", so what it sets is unknown", Fix: "see what is at that place"})
	}
}

// reason is an error without the path, which is one inside of Machine.Root.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

// MayReadAdvice is what to do about a file that this user may not read.
func MayReadAdvice() string {
	if os.Geteuid() == 0 {
		return "root may not read it either: see how its file system is mounted, and what else forbids it"
	}
	return "run the command as root (sudo)"
}
