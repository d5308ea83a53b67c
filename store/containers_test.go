package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDeque(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var d deque[int]
	var want []int
	for i := range 20_000 {
		switch n := r.IntN(10); {
		case n < 7:
			d.push(i)
			want = append(want, i)
		case n == 7 && len(want) > 0:
			d.popBack()
			want = want[:len(want)-1]
		case n == 8:
			k := r.IntN(len(want) + 1)
			if i%500 > 0 {
				k = min(k, 3)
			}
			d.dropFront(k)
			want = want[k:]
		}
		if d.len() != len(want) {
			t.Fatalf("step %d: length %d, want %d", i, d.len(), len(want))
		}
		if len(want) > 0 {
			k := r.IntN(len(want))
			if *d.at(k) != want[k] || *d.at(0) != want[0] || *d.at(len(want) - 1) != want[len(want)-1] {
				t.Fatalf("step %d: at(%d) is %d, want %d", i, k, *d.at(k), want[k])
			}
		}
		x := r.IntN(20_000)
		at, _ := slices.BinarySearch(want, x)
		if got := d.search(func(v *int) bool { return *v >= x }); got != at {
			t.Fatalf("step %d: search gives %d, want %d", i, got, at)
		}
	}
	if most := len(want)/dequeChunk + 3; len(d.chunks) > most {
		t.Errorf("%d chunks are kept for %d elements", len(d.chunks), len(want))
	}
}

func TestPins(t *testing.T) {
	var p pins
	freed := 0
	p.freed = func() { freed++ }
	p.add(5)
	p.add(3)
	p.add(3)
	if p.lowest(10) != 3 || p.lowest(2) != 2 || p.count() != 3 {
		t.Errorf("lowest %d, %d, count %d", p.lowest(10), p.lowest(2), p.count())
	}
	p.remove(5)
	if freed != 0 {
		t.Error("told of a pin that was not the lowest")
	}
	x := pin{&p, 3}
	x.Close()
	x.Close()
	if p.lowest(10) != 3 || p.count() != 1 {
		t.Errorf("lowest %d, count %d after one of two was closed", p.lowest(10), p.count())
	}
	p.remove(3)
	if freed == 0 || p.lowest(10) != 10 {
		t.Errorf("freed %d times, lowest %d", freed, p.lowest(10))
	}
	new(pin).Close()
}

// TestRanges compares the treap with a look at every watcher.
func TestRanges(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	key := func() string { return fmt.Sprintf("%02x", r.IntN(60))[:1+r.IntN(2)] }
	var x ranges
	var all []*watcher
	for step := range 6000 {
		if grow := step/1000%2 == 0; (r.IntN(4) > 0) == grow || len(all) == 0 {
			k := KeyRange{Key: []byte(key())}
			switch r.IntN(4) {
			case 0:
				k.End = []byte{0}
			case 1, 2:
				k.End = []byte(key() + "z")
			}
			if k.span().empty() {
				continue
			}
			w := &watcher{WatchRequest: WatchRequest{PrevKV: r.IntN(2) == 0}, span: k.span()}
			x.add(w)
			all = append(all, w)
		} else {
			i := r.IntN(len(all))
			x.remove(all[i])
			all = slices.Delete(all, i, i+1)
		}
		compareRanges(t, &x, all, key())
		if step%500 == 0 {
			checkTreap(t, x.root)
		}
	}
	for _, w := range all {
		x.remove(w)
	}
	if x.root != nil || len(x.keys) != 0 || len(x.groups) != 0 {
		t.Error("something is left of no watchers")
	}
}

func compareRanges(t *testing.T, x *ranges, all []*watcher, key string) {
	t.Helper()
	got := map[*watcher]int{}
	x.match(key, func(g *group) {
		prev := 0
		for i, w := range g.watchers {
			got[w]++
			if w.PrevKV {
				prev++
			}
			if w.pos != i || w.group != g || w.span != g.span {
				t.Fatal("a watcher does not know its place")
			}
		}
		if prev != g.wantPrev {
			t.Fatalf("wantPrev is %d, want %d", g.wantPrev, prev)
		}
	})
	for _, w := range all {
		want := 0
		if w.span.contains(key) {
			want = 1
		}
		if got[w] != want {
			t.Fatalf("key %q: watcher of %+v was matched %d times", key, w.span, got[w])
		}
	}
}

func checkTreap(t *testing.T, n *rangeNode) {
	if n == nil {
		return
	}
	before := *n
	if n.update(); *n != before {
		t.Fatalf("node %+v does not know its subtree", before)
	}
	for i, k := range []*rangeNode{n.left, n.right} {
		if k == nil {
			continue
		}
		if c := k.group.span.compare(n.group.span); k.priority > n.priority || (c < 0) != (i == 0) || c == 0 {
			t.Fatal("a child is out of order")
		}
		checkTreap(t, k)
	}
}
