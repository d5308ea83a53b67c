package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// skip names tests that are not run, and why.
type skip struct {
	suite string // its name
	// test is a pattern for the whole name. A pattern with slashes is for
	// subtests; each part is for one level.
	test   string
	reason string

	matches []string // filled by skipsOf
}

// skipsOf returns the skips of a suite with the tests that they match: those of
// the first level that exist, or the pattern of subtests itself. An error is
// returned when a test of the first level does not exist.
func (w *workspace) skipsOf(ctx context.Context, s suite) ([]skip, error) {
	var skips []skip
	for _, k := range knownSkips {
		if k.suite == s.name {
			skips = append(skips, k)
		}
	}
	if len(skips) == 0 {
		return nil, nil
	}
	names, err := w.list(ctx, s)
	if err != nil {
		return nil, err
	}
	for i := range skips {
		k := &skips[i]
		first, _, subtests := strings.Cut(k.test, "/")
		pattern, err := regexp.Compile(whole(first))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if pattern.MatchString(name) {
				k.matches = append(k.matches, name)
			}
		}
		if len(k.matches) == 0 {
			return nil, fmt.Errorf("skips.go: %s has no test %s", s.name, k.test)
		}
		if subtests {
			k.matches = []string{k.test}
		}
	}
	return skips, nil
}

// whole makes a pattern match whole names only.
func whole(pattern string) string { return "^(" + pattern + ")$" }

// skipPattern is what go test -skip takes for the skips.
func skipPattern(skips []skip) string {
	var patterns []string
	for _, k := range skips {
		var parts []string
		for part := range strings.SplitSeq(k.test, "/") {
			parts = append(parts, whole(part))
		}
		patterns = append(patterns, strings.Join(parts, "/"))
	}
	return strings.Join(patterns, "|")
}

// location is what t.Skip writes before its message.
var location = regexp.MustCompile(`^\s+\S+\.go:\d+: ?`)

// leftover begins what a test says that does not run because one before it
// failed and left something behind.
const leftover = "Found leaked"

// leftBehind reports whether a test was skipped for what one before it left.
func leftBehind(t *test) bool { return strings.HasPrefix(lastWords(t), leftover) }

// skipReason returns why a test was skipped: for a skip of this program, what
// it says, and otherwise the last words of the test. It is empty when nobody
// says why, or when a failure is the reason.
func skipReason(t *test) string {
	if t.reason != "" {
		return t.reason
	}
	if leftBehind(t) {
		return ""
	}
	return lastWords(t)
}

// lastWords returns the last message of a test.
func lastWords(t *test) (words string) {
	for _, line := range t.output {
		if location.MatchString(line) {
			if text := strings.TrimSpace(location.ReplaceAllString(line, "")); text != "" {
				words = text
			}
		}
	}
	return words
}
