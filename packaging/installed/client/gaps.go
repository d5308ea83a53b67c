package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// notable is the least gap that is reported: shorter ones come from the machine.
const notable = 20 * time.Millisecond

// gaps watches how long the answers of a kind stay away, whichever client waits for them.
type gaps struct {
	kind string

	mu    sync.Mutex
	last  time.Time
	count int
	found []time.Duration // of at least notable
}

func newGaps(kind string) *gaps { return &gaps{kind: kind} }

// answered tells that an answer came just now.
func (g *gaps) answered() {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if gap := now.Sub(g.last); g.count > 0 && gap >= notable {
		g.found = append(g.found, gap)
	}
	g.count++
	g.last = now
}

// String is one line of the report. The ten longest are shown, so that one that stands out does.
func (g *gaps) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.found) == 0 {
		return fmt.Sprintf("gaps between answers to %s: %d answers, none of %v or more", g.kind, g.count, notable)
	}
	slices.Sort(g.found)
	slices.Reverse(g.found)
	var longest []string
	for _, d := range g.found[:min(10, len(g.found))] {
		longest = append(longest, fmt.Sprint(d.Milliseconds()))
	}
	return fmt.Sprintf("gaps between answers to %s: %d answers, %d gaps of %v or more, median %d ms, longest (ms): %s",
		g.kind, g.count, len(g.found), notable, g.found[len(g.found)/2].Milliseconds(), strings.Join(longest, " "))
}
