package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// whoRuns names the user that this process is.
func whoRuns() string { return fmt.Sprintf("the user that Tarn runs as (uid %d)", os.Getuid()) }

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
