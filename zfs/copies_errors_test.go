package zfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What the system refuses comes with the next step, once, however often it is passed on.
func TestFileErrorsHaveANextStep(t *testing.T) {
	for cause, want := range map[syscall.Errno]struct {
		kind error
		step string
	}{
		syscall.EACCES: {ErrPermission, "run it as root, or as the user whom /data belongs to"},
		syscall.EPERM:  {ErrPermission, "run it as root"},
		syscall.EROFS:  {syscall.EROFS, "/data-snapshots is mounted read-only: mount it for writing"},
		syscall.ENOSPC: {ErrNoSpace, "make room on the file system of /data-snapshots"},
		syscall.EDQUOT: {ErrNoSpace, "make room"},
		syscall.ENOENT: {ErrNotFound, ""},
		syscall.EIO:    {syscall.EIO, ""},
	} {
		err := explainFile(&os.PathError{Op: "open", Path: "/data-snapshots/x", Err: cause}, "/data", "/data-snapshots")
		err = explainFile(fmt.Errorf("again: %w", err), "/data", "/data-snapshots")
		if !errors.Is(err, want.kind) || !errors.Is(err, cause) || want.step != "" && strings.Count(err.Error(), want.step) != 1 {
			t.Errorf("%v: %v", cause, err)
		}
		if text := "permission denied"; cause == syscall.EACCES && strings.Count(err.Error(), text) != 1 {
			t.Errorf("%v", err)
		}
	}
}
