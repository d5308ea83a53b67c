package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	recordRow  = regexp.MustCompile(`(?m)^\| (etcd|kine) \[#(\d+)\]\(https://github\.com/(?:etcd-io/etcd|k3s-io/kine)/(?:issues|pull)/(\d+)\) \|.*\| ` + "`" + `(\w+)` + "`" + ` \|$`)
	recordTest = regexp.MustCompile(`(?m)^func (Test(?:Etcd|Kine)\d+\w*)\(t \*testing\.T\)`)
)

// TestTrackRecord compares the table of docs/compatibility.md, of bugs that others had, with the
// tests that are named after them.
func TestTrackRecord(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(repoRoot, "docs/compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "\n## Bugs others had\n")
	if !ok {
		t.Fatal("docs/compatibility.md has no section of that name")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for _, row := range recordRow.FindAllStringSubmatch(section, -1) {
		project, number, link, test := row[1], row[2], row[3], row[4]
		prefix := "Test" + strings.ToUpper(project[:1]) + project[1:] + number
		name, ok := strings.CutPrefix(test, prefix)
		if !ok || name == "" || strings.ContainsAny(name[:1], "0123456789") || number != link {
			t.Errorf("the row of %s #%s links to %s and names %s, which should begin with %s", project, number, link, test, prefix)
		}
		listed[test] = false
	}
	if rows := strings.Count(section, "\n| ") - 1; rows != len(listed) || rows == 0 {
		t.Errorf("%d rows, and %d that name a bug and a test", rows, len(listed))
	}
	for _, f := range sourceFiles(t) {
		if !f.test {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repoRoot, f.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range recordTest.FindAllSubmatch(text, -1) {
			test := string(m[1])
			if _, ok := listed[test]; !ok {
				t.Errorf("%s has %s, which docs/compatibility.md does not list", f.name, test)
			}
			listed[test] = true
		}
	}
	for test, there := range listed {
		if !there {
			t.Errorf("docs/compatibility.md lists %s, which is not there", test)
		}
	}
}
