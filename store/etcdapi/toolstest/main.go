package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	pattern := flag.String("run", "", "run only the tests that match, as go test -run does")
	only := flag.String("suites", "", "run only the suites whose name holds one of these words, comma-separated")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := run(ctx, *pattern, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "toolstest:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// run runs the suites, one after another as they use the same ports, and
// prints the report. It returns whether nothing is wrong.
func run(ctx context.Context, pattern, only string) (bool, error) {
	if err := portsFree(); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "toolstest")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	defer endServers(dir)
	w, err := newWorkspace(ctx, dir)
	if err != nil {
		return false, err
	}
	p := report{whole: pattern == "" && only == ""}
	for _, s := range suites {
		if !selected(s, only) {
			continue
		}
		fmt.Printf("testing %s with %s\n", s.name, w.server)
		r, err := w.runSuite(ctx, s, pattern)
		if err != nil {
			return false, err
		}
		p.suites = append(p.suites, r)
	}
	if p.whole {
		if p.notRun, err = w.notRun(); err != nil {
			return false, err
		}
	}
	fmt.Println()
	return p.write(os.Stdout), nil
}

// selected reports whether only names the suite, or nothing.
func selected(s suite, only string) bool {
	for word := range strings.SplitSeq(only, ",") {
		if strings.Contains(s.name, word) {
			return true
		}
	}
	return false
}
