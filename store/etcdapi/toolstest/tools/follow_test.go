package tools

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// follower is an etcdctl that runs on, and what it says on both outputs.
type follower struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed when the program has ended
}

// follow starts an etcdctl that is killed at the end of the test.
func (s *server) follow(args ...string) *follower {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{t: s.t, cmd: s.command(ctx, args...), lines: make(chan string, 1000)}
	reader, writer := io.Pipe()
	f.cmd.Stdout, f.cmd.Stderr = writer, writer
	var err error
	if f.stdin, err = f.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		f.cmd.Wait()
		writer.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(f.lines)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
	}()
	s.t.Cleanup(func() { cancel(); <-read })
	return f
}

// wait waits for a line that holds text.
func (f *follower) wait(text string) {
	f.t.Helper()
	timeout := time.After(patience)
	var seen []string
	for {
		select {
		case line, open := <-f.lines:
			if !open {
				f.t.Fatalf("it ended without a line with %q:\n%s", text, strings.Join(seen, "\n"))
			}
			if strings.Contains(line, text) {
				return
			}
			seen = append(seen, line)
		case <-timeout:
			f.t.Fatalf("no line with %q came:\n%s", text, strings.Join(seen, "\n"))
		}
	}
}

// say writes a line to the program's standard input.
func (f *follower) say(line string) {
	f.t.Helper()
	if _, err := io.WriteString(f.stdin, line+"\n"); err != nil {
		f.t.Fatal(err)
	}
}
