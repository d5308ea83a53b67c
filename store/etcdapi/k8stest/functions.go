package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// functions are the exported test functions of shared: for each, the suites
// that called it.
type functions map[string][]string

// runFunction matches the names of test functions. Those of benchmarks start
// with RunBenchmark.
var runFunction = regexp.MustCompile(`^Run[A-Z]`)

// add notes which functions a suite called, from the coverage profile that it
// wrote.
func (f functions) add(suite, profile string) error {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "tool", "cover", "-func="+profile)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read the coverage profile of %s: %w\n%s", suite, err, &stderr)
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		// A line is the place, the function and the share of it that ran.
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || !runFunction.MatchString(fields[1]) || strings.HasPrefix(fields[1], "RunBenchmark") {
			continue
		}
		called := f[fields[1]]
		if fields[2] != "0.0%" {
			called = append(called, suite)
		}
		f[fields[1]] = called
	}
	return nil
}

// calledBy returns the functions that some suite called.
func (f functions) calledBy(suite string) []string {
	return f.where(func(called []string) bool { return slices.Contains(called, suite) })
}

// notCalledBy returns the functions that a suite did not call.
func (f functions) notCalledBy(suite string) []string {
	return f.where(func(called []string) bool { return !slices.Contains(called, suite) })
}

// notCalled returns the functions that no suite called.
func (f functions) notCalled() []string {
	return f.where(func(called []string) bool { return len(called) == 0 })
}

func (f functions) where(want func([]string) bool) []string {
	var names []string
	for name, called := range f {
		if want(called) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
