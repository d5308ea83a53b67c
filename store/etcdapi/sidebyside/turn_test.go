package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// takeFloor has the floor do a workload.
func takeFloor(t *testing.T, name string, keys int, posesAsServer bool) *turn {
	t.Helper()
	spec, err := floorSpec(keys, listSize)
	if err != nil {
		t.Fatal(err)
	}
	spec.floor = !posesAsServer
	chosen, err := chooseWorkloads(name)
	if err != nil {
		t.Fatal(err)
	}
	return take(t.Context(), chosen[0], spec, filepath.Join(t.TempDir(), "data"), true)
}

// wantFailure checks that a case failed for a reason and has no figures.
func wantFailure(t *testing.T, took *turn, name, reason string) {
	t.Helper()
	for _, f := range took.figures {
		if f.Case == name {
			t.Errorf("%s has failed and has the figure %q", name, f.Name)
		}
	}
	for _, f := range took.failures {
		if f.Case == name && strings.Contains(f.Reason, reason) && !f.NotOffered {
			return
		}
	}
	t.Errorf("%s has not failed with %q: %+v", name, reason, took.failures)
}

func TestFloorTakesPart(t *testing.T) {
	for name, lines := range map[string]int{"put": 3 * 6, "list": 2*2 + 2*4} {
		took := takeFloor(t, name, listKeys, false)
		if len(took.failures) > 0 || len(took.figures) != lines {
			t.Errorf("%s: %d figures instead of %d, failures %+v", name, len(took.figures), lines, took.failures)
		}
	}
}

// A server that stores nothing is the fastest of all.
func TestServerWithoutStoreFails(t *testing.T) {
	took := takeFloor(t, "put", listKeys, true)
	for _, name := range []string{"1 at a time", "16 at a time", "128 at a time"} {
		wantFailure(t, took, name, "there are 0 keys")
	}
}

func TestShortListFails(t *testing.T) {
	took := takeFloor(t, "list", listKeys-1, false)
	for _, name := range []string{"full", "RangeStream", "50 × full", "50 × RangeStream"} {
		wantFailure(t, took, name, "brought 9999 keys of 10000")
	}
}

func TestWrongKindOfListFails(t *testing.T) {
	took := takeFloor(t, "list", listKeys, true)
	wantFailure(t, took, "count", "brought 10000 keys of 0")
	wantFailure(t, took, "pages of 500", "a page of 10000 keys")
}

func TestServerThatDoesNotStart(t *testing.T) {
	w := workload{name: "start", run: startMany}
	took := take(t.Context(), w, serverSpec{name: "broken", command: []string{"false", "{port}"}}, t.TempDir(), true)
	wantFailure(t, took, "", "it ended: exit status 1")
}

func TestFigureOfNothingFails(t *testing.T) {
	took := take(t.Context(), workload{run: func(t *turn) error {
		t.measure("empty", func(set setter) error {
			set("ops/s", 1)
			set("p99 ms", math.NaN())
			return nil
		})
		return nil
	}}, serverSpec{}, t.TempDir(), true)
	wantFailure(t, took, "empty", "could tell p99 ms")
}
