package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// suiteTimeout bounds one suite; the longest takes a few minutes.
const suiteTimeout = 40 * time.Minute

// runSuite runs the tests of one package. pattern selects tests as go test
// -run does; empty selects all. An error is returned when go test cannot be
// run or ctx ends; failed tests are in the results.
func (w *workspace) runSuite(ctx context.Context, s suite, pattern string) (*results, error) {
	start := time.Now()
	skips, err := w.skipsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	args := []string{"test", "-json", "-count=1", "-timeout=" + suiteTimeout.String(), "-tags=" + s.tags}
	if skip := skipPattern(skips); skip != "" {
		args = append(args, "-skip="+skip)
	}
	if pattern != "" {
		args = append(args, "-run="+pattern)
	}
	args = append(args, "./"+s.dir)
	if s.binDir {
		args = append(args, "-bin-dir="+w.bin)
	}
	r, err := w.goTest(ctx, s, args)
	if err != nil {
		return nil, fmt.Errorf("run the tests of %s: %w", s.name, err)
	}
	endServers(filepath.Dir(w.bin))
	if err := w.repeat(ctx, s, r, args); err != nil {
		return nil, fmt.Errorf("repeat tests of %s: %w", s.name, err)
	}
	if pattern == "" {
		for _, k := range skips {
			for _, name := range k.matches {
				r.skip(name, k.reason)
			}
		}
	}
	r.suite, r.took = s.name, time.Since(start)
	return r, nil
}

// dirOf returns the directory of the module that the suite is in.
func (w *workspace) dirOf(s suite) string {
	if s.own {
		return "."
	}
	return w.tree
}

// goTest runs go test -json and reads what it says.
func (w *workspace) goTest(ctx context.Context, s suite, args []string) (*results, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = w.dirOf(s)
	cmd.Env = append(os.Environ(), envBin+"="+w.bin, envTree+"="+w.tree, "TMPDIR="+filepath.Dir(w.bin))
	cmd.Stderr = os.Stderr
	// An interrupt ends go test and the tests below it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, readErr := readEvents(out)
	// The exit code says no more than the events do, unless there are none.
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case readErr != nil:
		return nil, readErr
	case r.empty():
		return nil, fmt.Errorf("go test reported nothing and ended with: %v", err)
	}
	return r, nil
}

// list returns the names of the tests and examples of a suite.
func (w *workspace) list(ctx context.Context, s suite) ([]string, error) {
	args := []string{"test", "-tags=" + s.tags, "-list=.", "./" + s.dir}
	if s.binDir {
		args = append(args, "-bin-dir="+w.bin)
	}
	out, err := goTool(ctx, w.dirOf(s), args...)
	var names []string
	for line := range strings.Lines(out) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") {
			names = append(names, name)
		}
	}
	return names, err
}
