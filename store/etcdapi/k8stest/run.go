package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// suiteTimeout bounds one suite; the longest takes a minute and a half.
const suiteTimeout = 20 * time.Minute

// runSuite runs the tests of one package with the server s and writes a
// coverage profile of the shared test functions, beside which the tests keep
// their data. pattern selects tests as go test -run does; empty selects all. An
// error is returned when go test cannot be run or ctx ends; failed tests are in
// the results.
func runSuite(ctx context.Context, s server, suite, pattern, profile string) (*results, error) {
	start := time.Now()
	args := []string{"test", "-json", "-count=1", "-timeout=" + suiteTimeout.String(),
		"-coverpkg=" + shared, "-coverprofile=" + profile}
	if pattern != "" {
		args = append(args, "-run="+pattern)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, module+suite)...)
	cmd.Env = append(os.Environ(), envServer+"="+s.path, envServerKind+"="+s.kind, "TMPDIR="+filepath.Dir(profile))
	cmd.Stderr = os.Stderr
	// An interrupt ends go test and the tests below it, which end their servers.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run the tests of %s: %w", suite, err)
	}
	r, readErr := readEvents(out)
	// The exit code says no more than the events do, unless there are none.
	if err := cmd.Wait(); readErr == nil && r.empty() {
		readErr = fmt.Errorf("go test reported nothing and ended with: %v", err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if readErr != nil {
		return nil, fmt.Errorf("run the tests of %s: %w", suite, readErr)
	}
	r.suite, r.took = suite, time.Since(start)
	return r, nil
}
