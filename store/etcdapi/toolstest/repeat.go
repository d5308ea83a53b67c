package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// maxRepeats is how often a test is run again.
const maxRepeats = 2

// repeat runs the tests that did not run because one before them had not
// cleaned up yet. Their last results take the place of those before.
func (w *workspace) repeat(ctx context.Context, s suite, r *results, args []string) error {
	for n := 1; n <= maxRepeats; n++ {
		names := r.again()
		if len(names) == 0 {
			return nil
		}
		run := "-run=^(" + strings.Join(names, "|") + ")$"
		again, err := w.goTest(ctx, s, slices.Insert(slices.Clone(args), 1, run))
		endServers(filepath.Dir(w.bin))
		if err != nil {
			return err
		}
		r.replace(names, again, n)
	}
	return nil
}

// again returns the tests of the first level that are to be run again.
func (r *results) again() []string {
	var names []string
	for _, name := range r.order {
		t := r.byName[name]
		first, _, _ := strings.Cut(name, "/")
		if t.outcome == "skip" && leftBehind(t) && !slices.Contains(names, first) {
			names = append(names, first)
		}
	}
	return names
}

// replace takes the results of tests of the first level, and of their subtests,
// from another run.
func (r *results) replace(names []string, by *results, repeats int) {
	within := func(name string) bool {
		first, _, _ := strings.Cut(name, "/")
		return slices.Contains(names, first)
	}
	r.order = slices.DeleteFunc(r.order, within)
	for _, name := range by.order {
		if within(name) {
			r.order = append(r.order, name)
			r.byName[name] = by.byName[name]
			r.byName[name].repeats = repeats
		}
	}
}
