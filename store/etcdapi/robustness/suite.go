package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// checkLimit is how long the search for a linear order may take for one
// history. Most take a second or less.
const checkLimit = 2 * time.Minute

// suite runs scenarios and sums up.
type suite struct {
	bins    binaries
	work    string // directory for what is only needed during a scenario
	reports string // directory for what is kept
	keep    bool   // keep what has passed, too
	out     io.Writer

	passed   int
	failed   []string // plan, result, where it is kept, how to repeat
	skipped  []string // plan and reason
	total    figures
	running  time.Duration
	checking time.Duration
}

// run runs one plan and checks it. The error is one of the suite itself.
func (s *suite) run(ctx context.Context, p plan) (verdict, error) {
	fmt.Fprintln(s.out, p)
	dir, err := os.MkdirTemp(s.work, "scenario")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(dir)
	begin := time.Now()
	h, err := runScenario(ctx, p, s.bins, dir)
	if err != nil {
		return verdict{}, err
	}
	ran := time.Since(begin)
	out, err := os.Create(filepath.Join(dir, validationFile))
	if err != nil {
		return verdict{}, err
	}
	defer out.Close()
	begin = time.Now()
	v := check(h, filepath.Join(dir, segmentsName), checkLimit, out)
	checked := time.Since(begin)
	f := h.figures()
	s.total.add(f)
	s.running += ran
	s.checking += checked
	fmt.Fprintf(s.out, "    %v\n    ran for %.1f s, checked in %.1f s: %v\n", f, ran.Seconds(), checked.Seconds(), v)
	return v, s.note(p, h, v, dir)
}

// note counts a verdict, and keeps the history unless it has passed and is not wanted.
func (s *suite) note(p plan, h *history, v verdict, dir string) error {
	good := len(v.Violations) == 0 && v.Undecided == ""
	if good {
		s.passed++
	}
	if good && !s.keep {
		return nil
	}
	path := filepath.Join(s.reports, fmt.Sprintf("seed-%d-%s", p.Seed, time.Now().Format("20060102-150405")))
	if p.Broken != "" {
		path += "-" + p.Broken
	}
	if err := saveReport(path, dir, h, v); err != nil {
		return err
	}
	repeat := fmt.Sprintf("go run . -seed %d -seeds 1", p.Seed)
	if p.Broken != "" {
		repeat += " -broken " + p.Broken
	}
	text := fmt.Sprintf("%v: %v\n    kept in %s\n    run it again: %s\n    check what is kept again: go run . -check %s", p, v, path, repeat, path)
	fmt.Fprintf(s.out, "    kept in %s\n", path)
	switch {
	case good:
	case len(v.Violations) > 0:
		s.failed = append(s.failed, text)
	default:
		s.skipped = append(s.skipped, text)
	}
	return nil
}

// runMany runs plans of consecutive seeds until there were seeds of them and
// duration is over; either may be 0. It stops early when ctx ends.
func (s *suite) runMany(ctx context.Context, seed, seeds uint64, duration time.Duration, planOf func(uint64) plan) error {
	end := time.Now().Add(duration)
	for n := uint64(0); n < seeds || time.Now().Before(end); n++ {
		if _, err := s.run(ctx, planOf(seed+n)); err != nil {
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(s.out, "interrupted")
				return nil
			}
			return fmt.Errorf("seed %d: %w", seed+n, err)
		}
	}
	return nil
}

// sumUp prints the outcome and returns whether something was checked and nothing is wrong.
func (s *suite) sumUp() bool {
	for _, list := range [][]string{s.skipped, s.failed} {
		for _, text := range list {
			fmt.Fprintln(s.out, text)
		}
	}
	fmt.Fprintf(s.out, "%v; %v of traffic, %v of checks\n", s.total, s.running.Round(time.Second), s.checking.Round(time.Second))
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), len(s.skipped))
	return s.passed > 0 && len(s.failed) == 0
}
