package zfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// answerTime bounds the commands whose answer is a few lines.
	answerTime = 2 * time.Minute
	// killTime is how long a killed process gets to go away. One that hangs in
	// the kernel, as with a suspended pool, does not go.
	killTime = 2 * time.Second
	// keptStderr bounds what is kept of what a command says about its failure.
	keptStderr = 16 << 10
)

// run runs one command of ZFS, or one that leads to it, such as ssh; args[0] is
// the program. stdin and stdout can be nil. It is the only place where this
// package starts a process.
//
// When ctx ends, the process is killed and run returns within killTime, with an
// error that is ErrNoAnswer, even if the process hangs in the kernel; stdout gets
// nothing any more then. An error is a *CommandError.
func run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	fail := func(stderr string, err error) error { return newCommandError(args, stderr, err) }
	if err := ctx.Err(); err != nil {
		return fail("", err)
	}
	setEnviron()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = killTime
	stderr := &gate{to: &bytes.Buffer{}, max: keptStderr}
	cmd.Stdin, cmd.Stderr = stdin, stderr
	var out *gate
	switch w := stdout.(type) {
	case nil:
	case *os.File:
		cmd.Stdout = w // handed over as it is: no copying here
	default:
		out = &gate{to: w}
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		return fail("", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err := waitFor(ctx, done)
	if out != nil {
		out.close()
		if writeErr := out.err; writeErr != nil && ctx.Err() == nil {
			return fail("", fmt.Errorf("what it printed could not be written: %w", writeErr))
		}
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fail(stderr.close(), err)
}

// waitFor returns what done delivers, or the error of ctx when the process does
// not even end by being killed.
func waitFor(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(2 * killTime) // the process, and then its pipes
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return ctx.Err()
	}
}

// output runs a command that prints tab-separated lines, as -Hp makes them, and
// returns their fields. Without a deadline in ctx it gets answerTime.
func output(ctx context.Context, args ...string) ([][]string, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerTime)
		defer cancel()
	}
	var text bytes.Buffer
	if err := run(ctx, nil, &text, args...); err != nil {
		return nil, err
	}
	var lines [][]string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return lines, nil
}

// call runs a function of go-zfs, which takes no context, as output runs a command.
func call[T any](ctx context.Context, args []string, f func() (T, error)) (T, error) {
	setEnviron()
	value, err := inTime(ctx, f)
	if err != nil {
		stderr, cause := causeOf(err)
		return value, newCommandError(args, stderr, cause)
	}
	return value, nil
}

// inTime returns what f returns, or the error of ctx when that ends first: then f
// goes on by itself and its result is lost. Without a deadline in ctx it gets
// answerTime.
func inTime[T any](ctx context.Context, f func() (T, error)) (T, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerTime)
		defer cancel()
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// setEnviron sets the environment of all commands, those of go-zfs too: their errors
// are told apart by their text, so it must be the English one, and the PATH of
// ordinary users often lacks the directories that zfs and zpool are in.
var setEnviron = sync.OnceFunc(func() {
	os.Setenv("LC_ALL", "C")
	if _, err := exec.LookPath("zfs"); err != nil {
		os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin:/usr/local/sbin")
	}
})

// gate is a writer that can be closed while others write, and that passes on at
// most max bytes if that is not 0.
type gate struct {
	mu     sync.Mutex
	to     io.Writer
	max    int
	passed int
	closed bool
	err    error // of writing
}

var errGateClosed = errors.New("nobody reads the output any more")

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, errGateClosed
	}
	part := p
	if g.max > 0 {
		part = p[:min(len(p), g.max-g.passed)]
	}
	n, err := g.to.Write(part)
	g.passed += n
	if err != nil {
		g.err = err
		return n, err
	}
	return len(p), nil
}

// close ends the writing, and returns what was written if that is in a buffer.
func (g *gate) close() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if b, ok := g.to.(*bytes.Buffer); ok {
		return b.String()
	}
	return ""
}
