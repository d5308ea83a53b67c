package zfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	gozfs "github.com/mistifyio/go-zfs/v3"
)

// Kinds of failure, by what zfs and zpool print or by what the files of a copy
// say. Test with errors.Is.
var (
	// ErrNotFound is returned when a dataset, snapshot, bookmark or hold does not exist.
	ErrNotFound = errors.New("it does not exist")
	// ErrExists is returned when a dataset, snapshot or hold of that name exists.
	ErrExists = errors.New("it exists already")
	// ErrBusy is returned when something uses the dataset or snapshot: a hold, a
	// mount, a send or a receive.
	ErrBusy = errors.New("it is busy")
	// ErrHasClones is returned when a snapshot is the origin of a clone.
	ErrHasClones = errors.New("it has clones")
	// ErrPermission is returned when the user has no right to do it.
	ErrPermission = errors.New("permission denied")
	// ErrNoSpace is returned when the pool is full or a quota is used up.
	ErrNoSpace = errors.New("no space is left")
	// ErrNotMounted is returned when files are needed of a dataset that is not mounted.
	ErrNotMounted = errors.New("it is not mounted")
	// ErrSuspended is returned when the pool has stopped for want of its devices.
	ErrSuspended = errors.New("the pool is suspended")
	// ErrNoAnswer is returned when a command did not end in time or was cancelled.
	ErrNoAnswer = errors.New("no answer")
	// ErrNoZFS is returned when there is no ZFS here: no zfs program, or no kernel module.
	ErrNoZFS = errors.New("ZFS is not available")
	// ErrNotOurs is returned when a snapshot was not made by tarn, and is left alone for that.
	ErrNotOurs = errors.New("it is not a snapshot of tarn")
	// ErrDamaged is returned when a stream file or its manifest, or a file copy or its
	// description, is not what it was.
	ErrDamaged = errors.New("it is damaged")
)

// CommandError is the failure of one command.
type CommandError struct {
	Args   []string // with the program
	Stderr string   // what it printed
	Err    error    // one of the kinds above joined with the cause, or the cause alone
}

func (e *CommandError) Unwrap() error { return e.Err }

// Error is one line: operation and subject, cause, next step.
func (e *CommandError) Error() string {
	var b strings.Builder
	op, subject := e.operation()
	fmt.Fprintf(&b, "%s %s: ", op, subject)
	if said := oneLine(e.Stderr); said != "" {
		b.WriteString(said)
	} else {
		b.WriteString(e.Err.Error())
	}
	if step := e.nextStep(subject); step != "" {
		b.WriteString("; " + step)
	}
	return b.String()
}

// operation is what was done to what: "zfs destroy", "tank/tarn@x".
func (e *CommandError) operation() (op, subject string) {
	args := e.Args
	if i := slices.IndexFunc(args, isZFS); i >= 0 && args[0] == "ssh" {
		args = args[i:]
	}
	subject = args[len(args)-1]
	if isZFS(args[0]) && len(args) > 2 {
		return args[0] + " " + args[1], subject
	}
	return args[0], subject
}

func isZFS(program string) bool {
	name := path.Base(program)
	return name == "zfs" || name == "zpool"
}

func (e *CommandError) nextStep(subject string) string {
	pool := PoolOf(subject)
	for _, step := range []struct {
		kind error
		text string
	}{
		{ErrNoZFS, "install ZFS and load its module (modprobe zfs), or use a directory on another file system"},
		{ErrSuspended, "bring the devices back and run zpool clear " + pool},
		{ErrNoAnswer, "see zpool status " + pool + ": a suspended pool answers nothing"},
		{ErrPermission, "run it as root, or let root give the right with zfs allow"},
		{ErrNoSpace, "make room in the pool (zfs list -o space -r " + pool + ") or raise the quota"},
		{ErrHasClones, "destroy the clones first (zfs list -o name,origin -r " + pool + ")"},
		{ErrBusy, "a hold, a mount or a transfer uses it (zfs holds " + subject + ")"},
		{ErrNotMounted, "mount it with zfs mount " + subject},
	} {
		if errors.Is(e.Err, step.kind) {
			return step.text
		}
	}
	if strings.Contains(e.Stderr, "no such pool") {
		return "zpool list shows the pools, and zpool import those that can be imported"
	}
	return ""
}

// PoolOf is the pool in the name of a dataset, snapshot or bookmark.
func PoolOf(name string) string {
	pool, _, _ := strings.Cut(name, "/")
	pool, _, _ = strings.Cut(pool, "@")
	pool, _, _ = strings.Cut(pool, "#")
	return pool
}

// oneLine makes one line of what a command printed, without the usage that zfs adds
// to many of its errors, and without its advice to send again by hand with a token
// of many lines.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\nusage:")
	var lines []string
	for line := range strings.Lines(s) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !strings.HasPrefix(line, "A resuming stream can be generated") && !strings.Contains(line, "zfs send -t ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// sayings are what zfs and zpool print, in lower case, in the order in which
// they are looked for: the narrower first.
var sayings = []struct {
	text string
	kind error
}{
	{"zfs modules are not loaded", ErrNoZFS},
	{"zfs modules cannot be auto-loaded", ErrNoZFS},
	{"/dev/zfs and /proc", ErrNoZFS},
	{"/dev/zfs device is missing", ErrNoZFS},
	{"pool i/o is currently suspended", ErrSuspended},
	{"pool is suspended", ErrSuspended},
	{"dependent clones", ErrHasClones},
	{"permission denied", ErrPermission},
	{"operation not permitted", ErrPermission},
	{"must be run as root", ErrPermission},
	{"out of space", ErrNoSpace},
	{"no space left", ErrNoSpace},
	{"quota exceeded", ErrNoSpace},
	{"space quota", ErrNoSpace},
	{"not currently mounted", ErrNotMounted},
	{"is not mounted", ErrNotMounted},
	{"no such tag on this dataset", ErrNotFound},
	{"tag already exists", ErrExists},
	{"already exists", ErrExists},
	{"does not exist", ErrNotFound},
	{"could not find any", ErrNotFound},
	{"no such pool", ErrNotFound},
	{"no longer exists", ErrNotFound},
	{"busy", ErrBusy},
	{"being held", ErrBusy},
}

// newCommandError gives a failure its kind.
func newCommandError(args []string, stderr string, cause error) *CommandError {
	e := &CommandError{Args: slices.Clone(args), Stderr: stderr, Err: cause}
	kind := kindOf(stderr)
	switch {
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, context.Canceled):
		kind = ErrNoAnswer
	case errors.Is(cause, exec.ErrNotFound), errors.Is(cause, fs.ErrNotExist):
		kind = nil
		if isZFS(args[0]) {
			kind = ErrNoZFS
		}
	}
	if kind != nil {
		e.Err = fmt.Errorf("%w: %w", kind, cause)
	}
	return e
}

func kindOf(stderr string) error {
	text := strings.ToLower(stderr)
	for _, s := range sayings {
		if strings.Contains(text, s.text) {
			return s.kind
		}
	}
	return nil
}

// causeOf takes the error of a command that go-zfs ran apart: what the command
// printed, and why it failed.
func causeOf(err error) (stderr string, cause error) {
	var e *gozfs.Error
	if errors.As(err, &e) {
		return e.Stderr, e.Err
	}
	return "", err
}
