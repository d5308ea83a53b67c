package etcdapi

import (
	"math/rand/v2"
	"testing"
)

// collide against comparing each pair.
func TestCollideRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	letter := func() string { return string(rune('a' + r.IntN(12))) }
	yes := 0
	for range 20000 {
		var all []touch
		for range r.IntN(6) {
			x := touch{op: r.IntN(4), key: letter(), deleted: r.IntN(3) == 0}
			if x.deleted {
				x.end, x.open = letter(), r.IntN(8) == 0
			}
			all = append(all, x)
		}
		want := false
		for _, a := range all {
			for _, b := range all {
				if a.op == b.op || a.deleted {
					continue
				}
				want = want || !b.deleted && a.key == b.key ||
					b.deleted && a.key >= b.key && (b.open || a.key < b.end)
			}
		}
		if got := collide(all); got != want {
			t.Fatalf("collide(%+v) = %v, want %v", all, got, want)
		}
		if want {
			yes++
		}
	}
	if yes < 1000 || yes > 19000 {
		t.Errorf("%d of 20000 collide: the test is lopsided", yes)
	}
}
