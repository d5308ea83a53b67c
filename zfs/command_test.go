package zfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gozfs "github.com/mistifyio/go-zfs/v3"
)

// What zfs prints, word for word, and what it means.
func TestErrorKinds(t *testing.T) {
	for said, want := range map[string]error{
		"cannot open 'tank/none': dataset does not exist\n":                                                   ErrNotFound,
		"could not find any snapshots to destroy; check snapshot names.\n":                                    ErrNotFound,
		"cannot open 'tank': no such pool\n":                                                                  ErrNotFound,
		"bookmark 'tank/x#none' does not exist.\n":                                                            ErrNotFound,
		"cannot create snapshot 'tank/x@a': dataset already exists\nno snapshots were created\n":              ErrExists,
		"cannot hold snapshot 'tank/x@a': tag already exists on this dataset\n":                               ErrExists,
		"cannot release hold from snapshot 'tank/x@a': no such tag on this dataset\n":                         ErrNotFound,
		"cannot destroy snapshot tank/x@a: dataset is busy\n":                                                 ErrBusy,
		"cannot destroy snapshot tank/x@a: it's being held. Run 'zfs holds -r tank/x@a' to see holders.\n":    ErrBusy,
		"cannot destroy 'tank/x@a': snapshot has dependent clones\nuse '-R' to destroy the following\nt/c\n":  ErrHasClones,
		"cannot create snapshots : permission denied\n":                                                       ErrPermission,
		"Permission denied the ZFS utilities must be run as root.\n":                                          ErrPermission,
		"cannot create snapshot 'tank/x@a': out of space\nno snapshots were created\n":                        ErrNoSpace,
		"cannot receive new filesystem stream: destination tank/y space quota exceeded.\n":                    ErrNoSpace,
		"cannot open 'tank/x': pool I/O is currently suspended\n":                                             ErrSuspended,
		"The ZFS modules cannot be auto-loaded.\nTry running 'modprobe zfs' as root to manually load them.\n": ErrNoZFS,
		"/dev/zfs and /proc/self/mounts are required.\nTry running 'udevadm trigger' and 'mount -t proc'\n":   ErrNoZFS,
		"something new\n": nil,
	} {
		err := newCommandError([]string{"zfs", "destroy", "tank/x@a"}, said, errors.New("exit status 1"))
		for _, kind := range []error{ErrNotFound, ErrExists, ErrBusy, ErrHasClones, ErrPermission, ErrNoSpace, ErrNotMounted, ErrSuspended, ErrNoAnswer, ErrNoZFS} {
			if errors.Is(err, kind) != (kind == want) {
				t.Errorf("%q: is %v: %v", said, kind, errors.Is(err, kind))
			}
		}
		text := err.Error()
		if !strings.HasPrefix(text, "zfs destroy tank/x@a: ") || strings.Contains(text, "\n") {
			t.Errorf("%q reads %q", said, text)
		}
	}
}

func TestNextSteps(t *testing.T) {
	err := newCommandError([]string{"ssh", "--", "there", "env", "zfs", "snapshot", "tank/x@a"}, "out of space", errors.New("exit status 1"))
	for _, want := range []string{"zfs snapshot tank/x@a: out of space; ", "zfs list -o space -r tank)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	// Without a word from the command its end has to do.
	err = newCommandError([]string{"zfs", "list", "tank"}, "", errors.New("signal: killed"))
	if got := err.Error(); got != "zfs list tank: signal: killed" {
		t.Errorf("reads %q", got)
	}
	err = newCommandError([]string{"zfs", "snapshot", "tank@a"}, "cannot open 'tank': no\n\tmore\nusage:\n\tsnapshot [-r]\n", errors.New("exit status 2"))
	if got := err.Error(); got != "zfs snapshot tank@a: cannot open 'tank': no; more" {
		t.Errorf("reads %q", got)
	}
}

func TestPrograms(t *testing.T) {
	setEnviron() // before, or it would find a zfs that is really there
	t.Setenv("PATH", t.TempDir())
	for _, program := range []string{"zfs", "zpool"} {
		err := run(t.Context(), nil, nil, program, "list", "tank")
		if !errors.Is(err, ErrNoZFS) || !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "install ZFS") {
			t.Errorf("%s: %v", program, err)
		}
	}
	if _, err := (&Dataset{name: "tank"}).Facts(t.Context()); !errors.Is(err, ErrNoZFS) {
		t.Errorf("with go-zfs: %v", err)
	}
	if err := run(t.Context(), nil, nil, "ssh", "there"); err == nil || errors.Is(err, ErrNoZFS) {
		t.Errorf("ssh: %v", err)
	}
}

func TestRunStreams(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), strings.NewReader("in"), &out, "cat"); err != nil || out.String() != "in" {
		t.Errorf("%q, %v", out.String(), err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := run(t.Context(), strings.NewReader("in"), file, "cat"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(file.Name()); err != nil || string(got) != "in" {
		t.Errorf("%q, %v", got, err)
	}
	// What the reader of the output says is the cause, not the broken pipe.
	full := errors.New("disk full")
	err = run(t.Context(), strings.NewReader("in"), writerFunc(func([]byte) (int, error) { return 0, full }), "cat")
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	err = run(t.Context(), nil, nil, "sh", "-c", "yes | head -c 1000000 >&2; exit 3")
	var said *CommandError
	if !errors.As(err, &said) || len(said.Stderr) != keptStderr {
		t.Errorf("kept %d bytes of what it said", len(said.Stderr))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOutputFields(t *testing.T) {
	got, err := output(t.Context(), "printf", `a\tb\t\nc d\n\n`)
	if err != nil || fmt.Sprintf("%q", got) != `[["a" "b" ""] ["c d"] [""]]` {
		t.Errorf("%q, %v", got, err)
	}
}

// A command that does not end is ended with its context, also when something that
// it started holds its output open.
func TestCancel(t *testing.T) {
	for name, script := range map[string]string{
		"itself": "echo; exec sleep 1000", "a child": "echo; sleep 30 & wait",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		started := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		err := run(ctx, nil, started, "sh", "-c", script)
		if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A function of go-zfs that hangs is left behind.
func TestCallThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	forever := make(chan struct{})
	defer close(forever)
	_, err := call(ctx, []string{"zfs", "list", "tank"}, func() (int, error) { <-forever; return 1, nil })
	if !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	_, err = call(t.Context(), []string{"zfs", "list", "tank"}, func() (int, error) {
		return 0, &gozfs.Error{Err: errors.New("exit status 1"), Stderr: "cannot open 'tank': dataset does not exist"}
	})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestAskAsKubelet(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "zfs")
	for _, c := range []struct{ name, script, want string }{
		{"answers", `[ "$PATH" = /nowhere ] && [ "$*" = "list -Hp -o used,available,usedbydataset tank/x y" ] && printf '1\t2\t3\n'`, ""},
		{"fails", "echo broken >&2; exit 1", program + " list tank/x y: broken"},
		{"says something else", "echo 'no datasets'", "three numbers"},
		{"says no numbers", "printf '1\\t2\\t-\\n'", "three numbers"},
	} {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := AskAsKubelet(t.Context(), program, "/nowhere", "tank/x y")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := AskAsKubelet(t.Context(), program, "/nowhere", "-x"); err == nil {
		t.Error("a name that is none is passed on")
	}
}
