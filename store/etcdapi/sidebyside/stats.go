package main

import (
	"math"
	"slices"
	"time"
)

const mega = 1 << 20

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median returns the middle of some values, NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// quantile returns the smallest duration that the part q of all does not exceed, in
// milliseconds; NaN of none. It sorts them.
func quantile(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return math.NaN()
	}
	slices.Sort(took)
	i := int(math.Ceil(q*float64(len(took)))) - 1
	return millis(took[min(max(i, 0), len(took)-1)])
}
