package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// weight is how much a finding matters.
type weight string

// The weights, the most important first.
const (
	weightProblem weight = "problem" // something does not work, or data are in danger
	weightWarning weight = "warning" // it works, and should be changed
	weightUnknown weight = "unknown" // it could not be looked at
	weightNote    weight = "note"    // nothing need be done
	weightOK      weight = "ok"
)

var weights = []weight{weightProblem, weightWarning, weightUnknown, weightNote, weightOK}

// finding is one thing that was looked at; the JSON names are stable.
type finding struct {
	Weight weight `json:"weight"`
	Area   string `json:"area"`         // store, dataset, units, kubelet or k3s
	What   string `json:"what"`         // that was looked at, in a few words that do not change
	Found  string `json:"found"`        // a sentence
	Do     string `json:"do,omitempty"` // what a person should do
}

// findings collects what is found in one area. Its methods can be called at the same time.
type findings struct {
	area string

	mu   sync.Mutex
	list []finding
}

func (f *findings) add(w weight, what, do, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // one line, whatever a program has said
	f.list = append(f.list, finding{Weight: w, Area: f.area, What: what, Found: found, Do: do})
}

// all is what was found so far.
func (f *findings) all() []finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

func (f *findings) problem(what, do, format string, args ...any) {
	f.add(weightProblem, what, do, format, args...)
}

func (f *findings) warning(what, do, format string, args ...any) {
	f.add(weightWarning, what, do, format, args...)
}

func (f *findings) unknown(what, do, format string, args ...any) {
	f.add(weightUnknown, what, do, format, args...)
}

func (f *findings) note(what, format string, args ...any) {
	f.add(weightNote, what, "", format, args...)
}

func (f *findings) ok(what, format string, args ...any) { f.add(weightOK, what, "", format, args...) }

// byWeight sorts findings, the most important first, and keeps the order of those that weigh the same.
func byWeight(list []finding) []finding {
	sorted := append([]finding{}, list...) // never null in JSON
	slices.SortStableFunc(sorted, func(a, b finding) int {
		return slices.Index(weights, a.Weight) - slices.Index(weights, b.Weight)
	})
	return sorted
}

func countWeight(list []finding, w weight) (n int) {
	for _, f := range list {
		if f.Weight == w {
			n++
		}
	}
	return n
}

// printFindings writes findings for a person.
func printFindings(out io.Writer, list []finding) error {
	var b strings.Builder
	for _, f := range list {
		word := string(f.Weight)
		if f.Weight == weightProblem || f.Weight == weightWarning {
			word = strings.ToUpper(word)
		}
		fmt.Fprintf(&b, "%-8s %-8s %s: %s\n", word, f.Area, f.What, f.Found)
		if f.Do != "" {
			fmt.Fprintf(&b, "%-8s %-8s -> %s\n", "", "", f.Do)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// tally is a line about how many findings there are of each weight.
func tally(list []finding) string {
	count := func(w weight, one, more string) string {
		switch n := countWeight(list, w); n {
		case 0:
			return ""
		case 1:
			return "1 " + one
		default:
			return fmt.Sprintf("%d %s", n, more)
		}
	}
	var parts []string
	for _, s := range []string{
		count(weightProblem, "problem", "problems"), count(weightWarning, "warning", "warnings"),
		count(weightUnknown, "could not be looked at", "could not be looked at"),
	} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}
