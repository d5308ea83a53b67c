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

// A run is good only if something passed, nothing failed and nothing was left
// out unexplained.
func TestReportIsGood(t *testing.T) {
	for _, c := range []struct {
		name   string
		events string
		want   bool
	}{
		{"all passed", `{"Action":"pass","Test":"TestA"}`, true},
		{"one failed", `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"fail","Test":"TestB"}`, false},
		{"package failed", `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"fail"}`, false},
		{"nothing ran", `{"Action":"pass"}`, false},
		{"skip with a message", `{"Action":"pass","Test":"TestB"}` + "\n" +
			`{"Action":"output","Test":"TestA","Output":"    a_test.go:7: no disk\n"}` + "\n" + `{"Action":"skip","Test":"TestA"}`, true},
		{"skip without a message", `{"Action":"pass","Test":"TestB"}` + "\n" +
			`{"Action":"output","Test":"TestA","Output":"    a_test.go:7: \n"}` + "\n" + `{"Action":"skip","Test":"TestA"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := readEvents(strings.NewReader(c.events))
			if err != nil {
				t.Fatal(err)
			}
			if got := (report{suites: []*results{r}}).write(io.Discard); got != c.want {
				t.Errorf("good: %t, want %t", got, c.want)
			}
		})
	}
}

// A skip of a test is for its whole name and for nothing else.
func TestSkipPattern(t *testing.T) {
	got := skipPattern([]skip{{test: "TestA|TestB.*"}, {test: "TestC/x_.*/y"}})
	if want := "^(TestA|TestB.*)$|^(TestC)$/^(x_.*)$/^(y)$"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A skip that this program made counts once, with its own reason.
func TestSkipOfThisProgram(t *testing.T) {
	r, err := readEvents(strings.NewReader(`{"Action":"pass","Test":"TestA"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.skip("TestB", "no peers")
	if skips := r.with("skip"); len(skips) != 1 || skipReason(skips[0]) != "no peers" {
		t.Errorf("skips: %v", skips)
	}
}

// Only what did not run for what another test left is run again; the last
// results count.
func TestRepeats(t *testing.T) {
	events := func(lines ...string) *results {
		r, err := readEvents(strings.NewReader(strings.Join(lines, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := events(`{"Action":"fail","Test":"TestPut"}`, `{"Action":"pass","Test":"TestGet"}`,
		`{"Action":"output","Test":"TestNext","Output":"    a.go:1: Found leaked goroutines\n"}`, `{"Action":"skip","Test":"TestNext"}`,
		`{"Action":"fail"}`)
	names := r.again()
	if got := strings.Join(names, " "); got != "TestNext" {
		t.Fatalf("again: %s", got)
	}
	r.replace(names, events(`{"Action":"pass","Test":"TestNext/a"}`, `{"Action":"pass","Test":"TestNext"}`, `{"Action":"pass"}`), 1)
	if pass, fail, skip := len(r.with("pass")), r.with("fail"), len(r.with("skip")); pass != 2 || len(fail) != 1 || fail[0].name != "TestPut" || skip != 0 {
		t.Errorf("%d passed, failed: %v, %d skipped", pass, fail, skip)
	}
}

func TestOutputThatIsNoEvent(t *testing.T) {
	if _, err := readEvents(strings.NewReader("go: no network\n")); err == nil {
		t.Error("a line that is not an event was taken for one")
	}
}
