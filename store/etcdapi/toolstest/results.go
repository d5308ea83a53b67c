package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action string
	Test   string // empty: the package as a whole
	Output string
}

// test is what is known about one test, subtest or, under the empty name, the
// package as a whole.
type test struct {
	name    string
	outcome string // "pass", "fail", "skip"; empty: it did not end
	reason  string // of a skip that this program made
	output  []string
	parent  bool // it has subtests
	failing bool // one of its subtests failed
	repeats int  // how often it was run again
}

// results are the tests of one suite.
type results struct {
	suite  string
	took   time.Duration
	order  []string
	byName map[string]*test
}

// readEvents reads the output of go test -json. An error is returned when a
// line is not an event.
func readEvents(out io.Reader) (*results, error) {
	r := &results{byName: map[string]*test{}}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return r, fmt.Errorf("line %q is not an event of go test: %w", line, err)
			}
			r.add(e)
		}
		if err == io.EOF {
			r.settle()
			return r, nil
		}
		if err != nil {
			return r, err
		}
	}
}

func (r *results) add(e event) {
	t := r.byName[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		r.byName[e.Test] = t
		r.order = append(r.order, e.Test)
	}
	switch e.Action {
	case "output", "build-output":
		t.output = append(t.output, e.Output)
	case "pass", "fail", "skip":
		t.outcome = e.Action
	}
}

// skip adds a test that was not started.
func (r *results) skip(name, reason string) {
	r.add(event{Action: "skip", Test: name})
	r.byName[name].reason = reason
}

// settle turns tests that did not end into failed ones and marks the tests
// that only report their subtests.
func (r *results) settle() {
	for _, name := range r.order {
		t := r.byName[name]
		if t.outcome == "" {
			t.outcome = "fail"
			t.output = append(t.output, "did not end\n")
		}
		for up := name; up != ""; {
			up = parentOf(up)
			if p := r.byName[up]; p != nil {
				p.parent = true
				p.failing = p.failing || t.outcome == "fail"
			}
		}
	}
}

// parentOf returns the name of the test that a test is part of; the package as
// a whole is the last one.
func parentOf(name string) string {
	return name[:max(0, strings.LastIndexByte(name, '/'))]
}

// with returns the tests with an outcome, in the order in which they started. A
// test with subtests counts only where none of them explains its failure, and
// so does the package as a whole.
func (r *results) with(outcome string) []*test {
	var found []*test
	for _, name := range r.order {
		t := r.byName[name]
		whole := t.parent || name == ""
		if t.outcome == outcome && (!whole || outcome == "fail" && !t.failing) {
			found = append(found, t)
		}
	}
	return found
}

// empty reports whether there was no event at all.
func (r *results) empty() bool { return len(r.order) == 0 }
