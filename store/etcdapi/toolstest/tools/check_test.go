package tools

import (
	"strings"
	"testing"
)

// The verdicts depend on the machine; that all requests succeed does not.
func TestCheckPerf(t *testing.T) {
	s := start(t)
	stdout, stderr, _ := s.run("", "check", "perf", "--load=s", "--auto-compact", "--auto-defrag")
	for _, want := range []string{"Throughput", "lowest request", "Stddev"} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("there is no verdict on %q", want)
		}
	}
	for _, failure := range []string{"FAIL: too many errors", "rror:"} {
		if strings.Contains(stdout+stderr, failure) {
			t.Errorf("it says %q", failure)
		}
	}
	t.Logf("%s%s", stdout, stderr)
	s.expect("", "get", "--prefix", "/etcdctl-check-perf/", "--keys-only")
}

func TestCheckDatascale(t *testing.T) {
	s := start(t)
	out := s.ctl("check", "datascale", "--load=s", "--auto-compact", "--auto-defrag")
	if !strings.Contains(out, "PASS: Approximate system memory used") {
		t.Errorf("it did not pass:\n%s", out)
	}
	s.expect("", "get", "--prefix", "/etcdctl-check-datascale/", "--keys-only")
}
