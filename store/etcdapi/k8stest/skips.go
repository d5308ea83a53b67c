package main

import (
	"regexp"
	"strings"
)

// knownSkips explain tests that are skipped without a word.
var knownSkips = []struct{ suite, test, reason string }{
	{watchCache, "/test_List_with_limit_at_resource_version_0",
		"the watch cache answers a list at resource version 0 from memory and ignores its limit, on purpose (kubernetes issue 108003); " +
			"the same case runs in " + bareStore},
}

// location is what t.Skip writes before its message.
var location = regexp.MustCompile(`^\s+\S+\.go:\d+: ?`)

// skipReason returns why a test was skipped: in its own words, or else from
// knownSkips. It is empty when nobody says why.
func skipReason(suite string, t *test) string {
	var words []string
	for _, line := range t.output {
		if location.MatchString(line) {
			if text := strings.TrimSpace(location.ReplaceAllString(line, "")); text != "" {
				words = append(words, text)
			}
		}
	}
	if len(words) > 0 {
		return strings.Join(words, " ")
	}
	for _, k := range knownSkips {
		if k.suite == suite && strings.Contains(t.name, k.test) {
			return k.reason
		}
	}
	return ""
}
