package main

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// inThread runs what changes its thread in one that ends afterwards.
func inThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// trace attaches to the parent, and lets go of it.
func trace() error {
	return inThread(func() error {
		if err := unix.PtraceSeize(os.Getppid()); err != nil {
			return err
		}
		if err := unix.PtraceInterrupt(os.Getppid()); err != nil {
			return err
		}
		if _, err := unix.Wait4(os.Getppid(), nil, unix.WALL, nil); err != nil {
			return err
		}
		return unix.PtraceDetach(os.Getppid())
	})
}

// setClock sets the clock to the time that it has.
func setClock() error {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	return unix.Settimeofday(&now)
}

// status is a line of what the kernel says about this process.
func status(name string) string {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func capability() error {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if strings.Trim(status(set), "0") != "" {
			return nil
		}
	}
	return errors.New("all sets of capabilities are empty")
}

func gainRights() error {
	if status("NoNewPrivs") == "1" {
		return errors.New("no program that it runs can have more rights")
	}
	return nil
}
