package main

import (
	"cmp"
	"io"
	"strings"
	"testing"
)

// outcomes reads events and returns the names of the tests with each outcome.
func outcomes(t *testing.T, lines ...string) map[string]string {
	t.Helper()
	r, err := readEvents(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, outcome := range []string{"pass", "fail", "skip"} {
		var found []string
		for _, x := range r.with(outcome) {
			found = append(found, cmp.Or(x.name, "package"))
		}
		names[outcome] = strings.Join(found, " ")
	}
	return names
}

func TestCountOfTests(t *testing.T) {
	for _, c := range []struct {
		name             string
		events           []string
		pass, fail, skip string
	}{
		{
			"a test with subtests is not one more test",
			[]string{`{"Action":"run","Test":"TestA"}`, `{"Action":"pass","Test":"TestA/x"}`, `{"Action":"skip","Test":"TestA/y"}`,
				`{"Action":"pass","Test":"TestA"}`, `{"Action":"pass"}`},
			"TestA/x", "", "TestA/y",
		},
		{
			"a failed subtest explains the test and the package",
			[]string{`{"Action":"fail","Test":"TestA/x/1"}`, `{"Action":"fail","Test":"TestA/x"}`, `{"Action":"fail","Test":"TestA"}`, `{"Action":"fail"}`},
			"", "TestA/x/1", "",
		},
		{
			"a test that fails after its subtests passed",
			[]string{`{"Action":"pass","Test":"TestA/x"}`, `{"Action":"fail","Test":"TestA"}`, `{"Action":"fail"}`},
			"TestA/x", "TestA", "",
		},
		{
			"a package that fails without a test, as when it does not build",
			[]string{`{"Action":"build-output","Output":"no such name"}`, `{"Action":"fail"}`},
			"", "package", "",
		},
		{
			"a package without tests that match",
			[]string{`{"Action":"output","Output":"no tests to run"}`, `{"Action":"pass"}`},
			"", "", "",
		},
		{
			"a panic ends the process",
			[]string{`{"Action":"pass","Test":"TestA"}`, `{"Action":"run","Test":"TestB"}`, `{"Action":"fail"}`},
			"TestA", "TestB", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outcomes(t, c.events...)
			if got["pass"] != c.pass || got["fail"] != c.fail || got["skip"] != c.skip {
				t.Errorf("got %v, want pass %q, fail %q, skip %q", got, c.pass, c.fail, c.skip)
			}
		})
	}
}

// A run is good only if nothing failed and nothing was left out unexplained.
func TestReportIsGood(t *testing.T) {
	all := functions{"RunTestGet": {bareStore}}
	for _, c := range []struct {
		name      string
		suite     string
		events    string
		functions functions
		part      bool // not all tests were selected
		want      bool
	}{
		{name: "all passed", events: `{"Action":"pass","Test":"TestA"}`, functions: all, want: true},
		{name: "one failed", events: `{"Action":"fail","Test":"TestA"}`, functions: all},
		{name: "package failed", events: `{"Action":"fail"}`, functions: all},
		{name: "skip with a message", functions: all, want: true,
			events: `{"Action":"output","Test":"TestA","Output":"    a_test.go:7: no disk\n"}` + "\n" + `{"Action":"skip","Test":"TestA"}`},
		{name: "skip without a message", functions: all,
			events: `{"Action":"output","Test":"TestA","Output":"    a_test.go:7: \n"}` + "\n" + `{"Action":"skip","Test":"TestA"}`},
		{name: "known skip", suite: watchCache, functions: all, want: true,
			events: `{"Action":"skip","Test":"TestA/test_List_with_limit_at_resource_version_0_match=Any"}`},
		{name: "known skip in another suite", suite: bareStore, functions: all,
			events: `{"Action":"skip","Test":"TestA/test_List_with_limit_at_resource_version_0_match=Any"}`},
		{name: "a function did not run", events: `{"Action":"pass","Test":"TestA"}`, functions: functions{"RunTestGet": nil}},
		{name: "no function is known", events: `{"Action":"pass","Test":"TestA"}`, functions: functions{}},
		{name: "a function was not selected", events: `{"Action":"pass","Test":"TestA"}`, functions: functions{"RunTestGet": nil}, part: true, want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := readEvents(strings.NewReader(c.events))
			if err != nil {
				t.Fatal(err)
			}
			r.suite = c.suite
			p := report{suites: []*results{r}, functions: c.functions, whole: !c.part}
			if got := p.write(io.Discard); got != c.want {
				t.Errorf("good: %t, want %t", got, c.want)
			}
		})
	}
}

func TestOutputThatIsNoEvent(t *testing.T) {
	if _, err := readEvents(strings.NewReader("go: no network\n")); err == nil {
		t.Error("a line that is not an event was taken for one")
	}
}
