package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

func main() {
	pattern := flag.String("run", "", "run only the tests that match, as go test -run does")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := run(ctx, *pattern)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "k8stest:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// run runs all suites, one after another as some tests are short of time on a
// busy machine, and prints the report. It returns whether nothing is wrong.
func run(ctx context.Context, pattern string) (bool, error) {
	dir, err := os.MkdirTemp("", "k8stest")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	s, err := findServer(dir)
	if err != nil {
		return false, err
	}
	p := report{functions: functions{}, whole: pattern == ""}
	for i, suite := range suites {
		fmt.Printf("testing %s with %s\n", suite, s.kind)
		profile := filepath.Join(dir, strconv.Itoa(i)+".cover")
		r, err := runSuite(ctx, s, suite, pattern, profile)
		if err != nil {
			return false, err
		}
		p.suites = append(p.suites, r)
		if _, err := os.Stat(profile); err != nil {
			continue // the tests did not build, or ended early: the report says so
		}
		if err := p.functions.add(suite, profile); err != nil {
			return false, err
		}
	}
	fmt.Println()
	return p.write(os.Stdout), nil
}
