package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is what one scenario does. All of it follows from the seed; which request
// meets which failure does not, as that is a matter of time.
type plan struct {
	Seed    uint64
	Traffic string
	// Faulty: the server is faultserver, whose disk can be made slow or full.
	Faulty     bool
	Settings   []string // of the server
	QPS        float64  // requests of all clients together, at most
	Compaction time.Duration
	Failpoints []step
	After      time.Duration // traffic after the last failpoint
	Broken     string        // name of the broken server, if the server is one
}

// step is a failpoint after a time of undisturbed traffic.
type step struct {
	Wait time.Duration
	Name string
}

// stepsPerPlan is the number of failpoints in a scenario. With more of them the requests
// of unknown outcome add up, and the check takes too long.
const stepsPerPlan = 3

// coverage is the number of consecutive seeds after which each traffic has met each
// kind of server, and each failpoint has been used.
const coverage = 10

// newPlan makes the plan of a seed. pace scales the time of undisturbed traffic.
func newPlan(seed uint64, pace float64) plan {
	r := newRand(seed, 0)
	p := plan{Seed: seed, Faulty: seed%2 == 1}
	turn := seed / 2
	p.Traffic = traffics[turn%uint64(len(traffics))].name
	points := failpointNames(p.Faulty)
	for i := range uint64(stepsPerPlan) {
		p.Failpoints = append(p.Failpoints, step{
			Wait: scale(between(r, 500*time.Millisecond, 4*time.Second), pace),
			Name: points[(turn*stepsPerPlan+i)%uint64(len(points))],
		})
	}
	r.Shuffle(len(p.Failpoints), func(i, j int) {
		a, b := &p.Failpoints[i], &p.Failpoints[j]
		a.Name, b.Name = b.Name, a.Name
	})
	p.After = scale(between(r, time.Second, 4*time.Second), pace)
	p.QPS = pick(r, 100.0, 200, 400)
	p.Compaction = pick(r, 0, 100*time.Millisecond, 200*time.Millisecond, time.Second)
	p.Settings = []string{
		"--checkpoint-bytes=" + pick(r, "2048", "65536", "16777216"),
		"--checkpoint-age=" + pick(r, "1s", "5m"),
		"--watch-progress-notify-interval=" + pick(r, "100ms", "1s", "10m"),
	}
	return p
}

// newRand returns the n-th source of random numbers of a seed.
func newRand(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// String is one line for a person.
func (p plan) String() string {
	server := "tarn"
	if p.Faulty {
		server = "faultserver"
	}
	if p.Broken != "" {
		server = "broken: " + p.Broken
	}
	names := make([]string, len(p.Failpoints))
	for i, s := range p.Failpoints {
		names[i] = s.Name
	}
	return fmt.Sprintf("seed %d, %s, %s, up to %.0f/s, compaction %v, failpoints: %s", p.Seed, p.Traffic, server, p.QPS,
		p.Compaction, strings.Join(names, ", "))
}
