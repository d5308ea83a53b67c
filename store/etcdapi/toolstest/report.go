package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// maxOutput is the number of lines shown of the output of a failed test.
const maxOutput = 200

// report is the outcome of a run.
type report struct {
	suites []*results
	notRun *results // nil in a part of a run
	whole  bool     // all suites and tests were selected
}

// write prints the report and returns whether nothing is wrong: some test ran,
// none failed and every skip has a reason.
func (p report) write(w io.Writer) bool {
	all := p.suites
	if p.notRun != nil {
		all = append(slices.Clone(all), p.notRun)
	}
	failed := writeFailures(w, all)
	unexplained := writeSkips(w, all)
	writeRepeats(w, all)
	passed := writeCounts(w, all)
	return passed > 0 && failed+unexplained == 0
}

func writeFailures(w io.Writer, suites []*results) (count int) {
	for _, r := range suites {
		for _, t := range r.with("fail") {
			count++
			fmt.Fprintf(w, "FAILED  %s  %s\n", r.suite, cmp.Or(t.name, "(the package as a whole)"))
			for i, line := range t.output {
				if i == maxOutput {
					fmt.Fprintf(w, "        (%d more lines)\n", len(t.output)-i)
					break
				}
				fmt.Fprintf(w, "        %s\n", strings.TrimRight(line, "\n"))
			}
		}
	}
	return count
}

// writeSkips prints each reason once, with the tests that it is the reason of.
func writeSkips(w io.Writer, suites []*results) (unexplained int) {
	var reasons []string
	tests := map[string][]string{}
	for _, r := range suites {
		for _, t := range r.with("skip") {
			reason := skipReason(t)
			if reason == "" {
				unexplained++
				reason = "NO REASON GIVEN: find it and add the test to skips.go"
			}
			if tests[reason] == nil {
				reasons = append(reasons, reason)
			}
			tests[reason] = append(tests[reason], r.suite+" "+t.name)
		}
	}
	for _, reason := range reasons {
		fmt.Fprintf(w, "SKIPPED because: %s (%d)\n", reason, len(tests[reason]))
		for _, name := range tests[reason] {
			fmt.Fprintf(w, "        %s\n", name)
		}
	}
	return unexplained
}

// writeRepeats names the tests that were run again.
func writeRepeats(w io.Writer, suites []*results) {
	for _, r := range suites {
		for _, name := range r.order {
			if t := r.byName[name]; t.repeats > 0 && !strings.Contains(name, "/") {
				fmt.Fprintf(w, "REPEATED %s %s, %d times, then: %s\n", r.suite, name, t.repeats, t.outcome)
			}
		}
	}
}

func writeCounts(w io.Writer, suites []*results) (passed int) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, passed, failed, skipped int, took time.Duration) {
		fmt.Fprintf(table, "%s\t%d passed\t%d failed\t%d skipped\t%s\t\n", name, passed, failed, skipped, took.Round(time.Second))
	}
	var failed, skipped int
	var took time.Duration
	for _, r := range suites {
		pass, fail, skip := len(r.with("pass")), len(r.with("fail")), len(r.with("skip"))
		row(r.suite, pass, fail, skip, r.took)
		passed, failed, skipped, took = passed+pass, failed+fail, skipped+skip, took+r.took
	}
	row("all", passed, failed, skipped, took)
	table.Flush()
	return passed
}
