package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// maxOutput is the number of lines shown of the output of a failed test.
const maxOutput = 200

// report is the outcome of a run.
type report struct {
	suites    []*results
	functions functions
	whole     bool // all tests were selected
}

// write prints the report and returns whether nothing is wrong: no test failed,
// every skip has a reason and, in a whole run, every shared function ran.
func (p report) write(w io.Writer) bool {
	failed := p.writeFailures(w)
	unexplained := p.writeSkips(w)
	missing := p.writeFunctions(w)
	p.writeCounts(w)
	return failed+unexplained+missing == 0
}

func (p report) writeFailures(w io.Writer) (count int) {
	for _, r := range p.suites {
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

func (p report) writeSkips(w io.Writer) (unexplained int) {
	for _, r := range p.suites {
		for _, t := range r.with("skip") {
			reason := skipReason(r.suite, t)
			if reason == "" {
				unexplained++
				reason = "NO REASON GIVEN: find it and add it to skips.go"
			}
			fmt.Fprintf(w, "SKIPPED %s  %s\n        %s\n", r.suite, t.name, reason)
		}
	}
	return unexplained
}

// writeFunctions says which of the shared functions ran.
func (p report) writeFunctions(w io.Writer) (missing int) {
	if !p.whole {
		return 0
	}
	notCalled := p.functions.notCalled()
	fmt.Fprintf(w, "\n%d of %d exported test functions of %s ran\n",
		len(p.functions)-len(notCalled), len(p.functions), shared)
	for _, name := range notCalled {
		fmt.Fprintf(w, "  NOT RUN %s\n", name)
	}
	for _, suite := range []string{bareStore, watchCache} {
		fmt.Fprintf(w, "  %s calls %d\n", suite, len(p.functions.calledBy(suite)))
		for _, name := range p.functions.notCalledBy(suite) {
			fmt.Fprintf(w, "    it has no test that calls %s\n", name)
		}
	}
	if len(p.functions) == 0 {
		return 1
	}
	return len(notCalled)
}

func (p report) writeCounts(w io.Writer) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, passed, failed, skipped int, took time.Duration) {
		fmt.Fprintf(table, "%s\t%d passed\t%d failed\t%d skipped\t%s\t\n", name, passed, failed, skipped, took.Round(time.Second))
	}
	var passed, failed, skipped int
	var took time.Duration
	for _, r := range p.suites {
		pass, fail, skip := len(r.with("pass")), len(r.with("fail")), len(r.with("skip"))
		row(r.suite, pass, fail, skip, r.took)
		passed, failed, skipped, took = passed+pass, failed+fail, skipped+skip, took+r.took
	}
	row("all", passed, failed, skipped, took)
	table.Flush()
}
