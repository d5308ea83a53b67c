package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tries is how many scenarios a broken server may get until it is caught. Each takes
// some seconds, and the first one is nearly always enough.
const tries = 5

// TestBrokenServers is the proof that the suite can fail: each server that breaks a
// promise is caught, for the promise that it breaks, and the one that breaks none
// is not.
func TestBrokenServers(t *testing.T) {
	seed := rand.Uint64N(1_000_000)
	t.Logf("first seed %d", seed)
	for _, b := range brokenServers {
		t.Run(b.name, func(t *testing.T) {
			s, out := newTestSuite(t)
			begin := time.Now()
			var found []string
			for n := range uint64(tries) {
				v, err := s.run(t.Context(), b.plan(seed+n))
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Join(v.Violations, "; ")
				if b.caught == "" {
					if v.String() != "passed" {
						t.Errorf("a sound server does not pass\n%s", out)
					}
					return
				}
				if strings.Contains(text, b.caught) {
					t.Logf("caught in %.1f s", time.Since(begin).Seconds())
					checkReport(t, s, v)
					return
				}
				found = append(found, v.String())
			}
			t.Errorf("%q was not found, but: %q", b.caught, found)
		})
	}
}

// checkReport checks that what was kept of a violation shows it again.
func checkReport(t *testing.T, s *suite, v verdict) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(s.reports, "*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("nothing was kept: %v", err)
	}
	last := kept[len(kept)-1]
	h, err := loadReport(last)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), validationFile))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	again := check(h, filepath.Join(last, keptSegments), checkLimit, out)
	if again.String() != v.String() {
		t.Errorf("first:  %v\nagain: %v", v, again)
	}
}

// TestSoundServers runs real scenarios, one with each kind of server.
func TestSoundServers(t *testing.T) {
	s, out := newTestSuite(t)
	seed := rand.Uint64N(1_000_000)
	for _, p := range []plan{newPlan(seed, shortPace), newPlan(seed+1, shortPace)} {
		if _, err := s.run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if !s.sumUp() {
		t.Error("a scenario did not pass")
	}
	t.Log(out)
}

func newTestSuite(t *testing.T) (*suite, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	return &suite{bins: bins, work: t.TempDir(), reports: t.TempDir(), out: out}, out
}
