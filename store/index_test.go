package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// TestIndex compares the tree with a sorted slice over random pushes and pops,
// with few and with many keys, so that nodes split, share out and merge.
func TestIndex(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var x index
	want := map[string][]record{}
	main := int64(0)
	for phase := range 8 {
		grow := phase%2 == 0
		for range 4000 {
			key := fmt.Sprintf("%04x", r.IntN(6000))
			x.update(key, func(e *entry) {
				if had := want[key]; grow == (r.IntN(5) > 0) || len(had) == 0 {
					main++
					rec := record{main: main, version: r.Int64N(3), size: r.Int32N(100)}
					want[key] = append(had, rec)
					e.push(rec)
				} else {
					got, last := e.pop(), had[len(had)-1]
					if got != last {
						t.Fatalf("popped %+v, want %+v", got, last)
					}
					if want[key] = had[:len(had)-1]; len(had) == 1 {
						delete(want, key)
					}
				}
			})
		}
		compareIndex(t, r, &x, want)
	}
	for key := range want { // down to nothing
		x.update(key, func(e *entry) { *e = entry{key: e.key} })
	}
	compareIndex(t, r, &x, nil)
	if x.root.kids != nil {
		t.Error("an empty tree has inner nodes")
	}
}

func compareIndex(t *testing.T, r *rand.Rand, x *index, want map[string][]record) {
	t.Helper()
	checkNode(t, &x.root, "", "", true)
	keys := make([]string, 0, len(want))
	for k := range want {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if x.keys != len(keys) {
		t.Fatalf("%d keys, want %d", x.keys, len(keys))
	}
	for range 200 {
		s := span{start: fmt.Sprintf("%04x", r.IntN(6500)), end: fmt.Sprintf("%04x", r.IntN(6500)), open: r.IntN(5) == 0}
		var got, in []string
		var total sum
		for _, k := range keys {
			if s.contains(k) {
				in = append(in, k)
				e := entry{last: want[k][len(want[k])-1]}
				total.add(e.sum())
			}
		}
		x.ascend(s, func(e *entry) bool {
			got = append(got, e.key)
			return true
		})
		if !slices.Equal(got, in) || x.sumOf(s) != total {
			t.Fatalf("span %+v: %d keys, sum %+v, want %d, %+v", s, len(got), x.sumOf(s), len(in), total)
		}
		if len(in) > 1 { // an early end
			n := 0
			x.ascend(s, func(*entry) bool { n++; return n < 2 })
			if n != 2 {
				t.Fatalf("ascend went on to %d", n)
			}
		}
		e := x.get(s.start)
		if recs := want[s.start]; (e == nil) != (recs == nil) || e != nil && e.last != recs[len(recs)-1] {
			t.Fatalf("get %q: %+v, want %+v", s.start, e, recs)
		}
	}
}

// checkNode checks sums, order, bounds and sizes below a node, and returns its depth.
func checkNode(t *testing.T, n *node, low, high string, root bool) int {
	t.Helper()
	if n.size() > maxNode || !root && n.size() < minNode || n.kids != nil && n.entries != nil {
		t.Fatalf("a node has %d entries and %d children", len(n.entries), len(n.kids))
	}
	for i, e := range n.entries {
		if e.key < low || high != "" && e.key >= high || i > 0 && n.entries[i-1].key >= e.key {
			t.Fatalf("key %q is out of order or of [%q, %q)", e.key, low, high)
		}
	}
	depth := 0
	for i := range n.kids {
		k, end := &n.kids[i], high
		if i+1 < len(n.kids) {
			end = n.kids[i+1].low
		}
		if k.sum != k.total() {
			t.Fatalf("sum %+v, want %+v", k.sum, k.total())
		}
		d := checkNode(t, k.node, max(low, k.low), end, false)
		if i > 0 && d != depth {
			t.Fatal("the leaves are not equally deep")
		}
		depth = d
	}
	return depth + 1
}

// TestPrune has the cases of entry.prune: what a read, or a watch that begins, at floor or above needs.
func TestPrune(t *testing.T) {
	// A record is written as its main revision, negative for a tombstone.
	for _, c := range []struct {
		name             string
		history          []int64
		floor            int64
		wantDead, remain []int64
	}{
		{"nothing below", []int64{5, 6}, 4, nil, []int64{5, 6}},
		{"the newest at floor stays", []int64{3, 5}, 5, []int64{3}, []int64{5}},
		{"the newest below floor stays", []int64{3, 5}, 9, []int64{3}, []int64{5}},
		{"one record", []int64{3}, 9, nil, []int64{3}},
		{"in the midst", []int64{2, 3, 5, 7}, 6, []int64{2, 3}, []int64{5, 7}},
		{"tombstone below floor goes", []int64{2, -3, 5}, 4, []int64{2, -3}, []int64{5}},
		{"tombstone at floor stays", []int64{2, -3, 5}, 3, []int64{2}, []int64{-3, 5}},
		{"tombstone as the newest goes with all", []int64{2, -3}, 4, []int64{2, -3}, nil},
		{"tombstone as the newest at floor", []int64{2, -3}, 3, []int64{2}, []int64{-3}},
		{"old generations", []int64{2, -3, 4, -5, 6}, 6, []int64{2, -3, 4, -5}, []int64{6}},
		{"twice at one revision", []int64{4, -4}, 4, []int64{4}, []int64{-4}},
		{"twice at one revision, below", []int64{4, -4}, 5, []int64{4, -4}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entry{key: "k"}
			for i, main := range c.history {
				r := record{main: max(main, -main), version: 1}
				if main < 0 {
					r.version = 0
				}
				if i > 0 && e.last.main == r.main {
					r.sub = e.last.sub + 1
				}
				e.push(r)
			}
			var all, dead []record
			all = append(append(all, e.older...), e.last)
			for _, r := range all {
				if r.main <= c.floor {
					dead = e.prune(r.main, r.sub, c.floor, dead)
				}
			}
			var left []int64
			if e.last.main != 0 {
				left = signed(append(slices.Clone(e.older), e.last))
			}
			if dead := signed(dead); !slices.Equal(dead, c.wantDead) || !slices.Equal(left, c.remain) {
				t.Errorf("removed %v, left %v, want %v and %v", dead, left, c.wantDead, c.remain)
			}
		})
	}
}

// What a start has not noted as a change goes with the change that supersedes it.
func TestPruneWithoutTheFirstChange(t *testing.T) {
	e := entry{key: "k"}
	for main := int64(2); main < 6; main++ {
		e.push(record{main: main, version: main - 1})
	}
	if dead := signed(e.prune(4, 0, 5, nil)); !slices.Equal(dead, []int64{2, 3, 4}) {
		t.Errorf("removed %v", dead)
	}
	if dead := e.prune(3, 0, 5, nil); dead != nil || e.last.main != 5 {
		t.Errorf("a change that is gone removed %v", dead)
	}
}

func signed(records []record) (out []int64) {
	for _, r := range records {
		if r.tombstone() {
			r.main = -r.main
		}
		out = append(out, r.main)
	}
	return out
}
