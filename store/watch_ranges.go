package store

import (
	"cmp"
	"math/rand/v2"
)

// group is the watchers that watch the same range: they are matched once.
type group struct {
	span     span
	watchers []*watcher
	// wantPrev counts those that want previous records.
	wantPrev int
	// events of the revision being published.
	events []*Event
}

// ranges finds the groups whose range holds a key: single keys in a map,
// other ranges in a treap by start, whose nodes know the largest end below them.
type ranges struct {
	groups map[span]*group
	keys   map[string]*group
	root   *rangeNode
}

type rangeNode struct {
	group       *group
	priority    uint64
	left, right *rangeNode
	end         string // largest end in this subtree
	open        bool   // a range in this subtree has no end
}

func (s span) single() bool { return !s.open && s.end == s.start+"\x00" }

func (s span) compare(o span) int {
	if c := cmp.Compare(s.start, o.start); c != 0 {
		return c
	}
	if c := cmp.Compare(s.end, o.end); c != 0 || s.open == o.open {
		return c
	}
	if s.open {
		return 1
	}
	return -1
}

func (r *ranges) add(w *watcher) {
	g := r.groups[w.span]
	if g == nil {
		if r.groups == nil {
			r.groups, r.keys = make(map[span]*group), make(map[string]*group)
		}
		g = &group{span: w.span}
		r.groups[w.span] = g
		if w.span.single() {
			r.keys[w.span.start] = g
		} else {
			r.root = r.root.insert(&rangeNode{group: g, priority: rand.Uint64()})
		}
	}
	w.group, w.pos = g, len(g.watchers)
	g.watchers = append(g.watchers, w)
	if w.PrevKV {
		g.wantPrev++
	}
}

func (r *ranges) remove(w *watcher) {
	g := w.group
	last := g.watchers[len(g.watchers)-1]
	g.watchers[w.pos], last.pos = last, w.pos
	g.watchers[len(g.watchers)-1] = nil
	g.watchers = g.watchers[:len(g.watchers)-1]
	w.group = nil
	if w.PrevKV {
		g.wantPrev--
	}
	if len(g.watchers) > 0 {
		return
	}
	delete(r.groups, g.span)
	if g.span.single() {
		delete(r.keys, g.span.start)
	} else {
		r.root = r.root.remove(g.span)
	}
}

// match calls each for the groups whose range holds key.
func (r *ranges) match(key string, each func(*group)) {
	if g := r.keys[key]; g != nil {
		each(g)
	}
	r.root.match(key, each)
}

func (n *rangeNode) match(key string, each func(*group)) {
	if n == nil || !n.open && n.end <= key {
		return
	}
	n.left.match(key, each)
	if n.group.span.start > key {
		return
	}
	if n.group.span.contains(key) {
		each(n.group)
	}
	n.right.match(key, each)
}

// update works out what the node knows of its subtree.
func (n *rangeNode) update() *rangeNode {
	n.end, n.open = n.group.span.end, n.group.span.open
	for _, k := range [2]*rangeNode{n.left, n.right} {
		if k != nil {
			n.end, n.open = max(n.end, k.end), n.open || k.open
		}
	}
	return n
}

func (n *rangeNode) insert(x *rangeNode) *rangeNode {
	switch {
	case n == nil:
		return x.update()
	case x.priority > n.priority:
		x.left, x.right = n.split(x.group.span)
		return x.update()
	case x.group.span.compare(n.group.span) < 0:
		n.left = n.left.insert(x)
	default:
		n.right = n.right.insert(x)
	}
	return n.update()
}

// split takes a subtree apart: what is below s, and the rest.
func (n *rangeNode) split(s span) (below, rest *rangeNode) {
	if n == nil {
		return nil, nil
	}
	if n.group.span.compare(s) < 0 {
		n.right, rest = n.right.split(s)
		return n.update(), rest
	}
	below, n.left = n.left.split(s)
	return below, n.update()
}

func (n *rangeNode) remove(s span) *rangeNode {
	if n == nil {
		return nil
	}
	switch c := s.compare(n.group.span); {
	case c == 0:
		return n.left.join(n.right)
	case c < 0:
		n.left = n.left.remove(s)
	default:
		n.right = n.right.remove(s)
	}
	return n.update()
}

// join puts two subtrees together, all of n being below o.
func (n *rangeNode) join(o *rangeNode) *rangeNode {
	switch {
	case n == nil:
		return o
	case o == nil:
		return n
	case n.priority > o.priority:
		n.right = n.right.join(o)
		return n.update()
	default:
		o.left = n.join(o.left)
		return o.update()
	}
}
