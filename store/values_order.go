package store

import (
	"math"
	"math/bits"
	"slices"
)

// revisionOrder sorts places by main revision. A key is a revision, less the lowest one,
// and below it the place's position, so that only numbers are moved.
type revisionOrder struct {
	keys         []uint64
	spare        []uint64
	positionBits int
}

// radixMin is the number of places from which on a radix sort is quicker.
const radixMin = 256

// radixBits is the width of a digit: the counts of one fit the first cache.
const radixBits = 11

func (o *revisionOrder) position(key uint64) int { return int(key & (1<<o.positionBits - 1)) }

func (o *revisionOrder) sort(places []place) {
	lowest, highest, sorted := int64(math.MaxInt64), int64(0), true
	for i := range places {
		main := places[i].main
		sorted = sorted && main >= highest
		lowest, highest = min(lowest, main), max(highest, main)
	}
	o.positionBits = bits.Len(uint(len(places)))
	o.keys = o.keys[:0]
	for i := range places {
		o.keys = append(o.keys, uint64(places[i].main-lowest)<<o.positionBits|uint64(i))
	}
	switch {
	case sorted:
	case len(places) < radixMin:
		slices.Sort(o.keys)
	default:
		o.radix(bits.Len64(uint64(highest - lowest)))
	}
}

// radix sorts by the given number of bits above the positions, which are in order.
func (o *revisionOrder) radix(width int) {
	o.spare = slices.Grow(o.spare[:0], len(o.keys))[:len(o.keys)]
	for shift := o.positionBits; shift < o.positionBits+width; shift += radixBits {
		var starts [1<<radixBits + 1]int32
		for _, key := range o.keys {
			starts[digit(key, shift)+1]++
		}
		for d := range len(starts) - 1 {
			starts[d+1] += starts[d]
		}
		for _, key := range o.keys {
			d := digit(key, shift)
			o.spare[starts[d]] = key
			starts[d]++
		}
		o.keys, o.spare = o.spare, o.keys
	}
}

func digit(key uint64, shift int) int { return int(key >> shift & (1<<radixBits - 1)) }
