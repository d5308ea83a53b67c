package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/tarn-kv/tarn/zfs"
)

// whoRuns names the user that this process is.
func whoRuns() string { return fmt.Sprintf("the user that Tarn runs as (uid %d)", os.Getuid()) }

// withOwnerAdvice says who may do what the system refuses with the files of a directory. An error of
// package zfs says it already.
func withOwnerAdvice(err error, dir string) error {
	if errors.Is(err, zfs.ErrPermission) {
		return err
	}
	return withAdvice(err, "run it as root, or as the user whom "+dir+" belongs to")
}

// withAdvice adds to an error of the system what to do about it. permission is that for one
// that says the process may not.
func withAdvice(err error, permission string) error {
	advice := ""
	switch {
	case errors.Is(err, fs.ErrPermission):
		advice = permission
	case errors.Is(err, syscall.EROFS):
		advice = "the file system is mounted read-only: mount it for writing, or choose another directory"
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "stop the process that has it (ss -lptn names it), or choose another port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "no interface of this machine has that address: wait for the network, or choose another one"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
