package store

import "sort"

func newKid(low string, n *node) kid { return kid{low: low, sum: n.total(), node: n} }

// find returns the position of key among a leaf's entries, or where it belongs.
func (n *node) find(key string) (int, bool) {
	i := sort.Search(len(n.entries), func(i int) bool { return n.entries[i].key >= key })
	return i, i < len(n.entries) && n.entries[i].key == key
}

// kidOf returns the position of the child that key belongs to.
func (n *node) kidOf(key string) int {
	i := sort.Search(len(n.kids), func(i int) bool { return n.kids[i].low > key })
	return max(i-1, 0)
}

func (n *node) size() int { return len(n.entries) + len(n.kids) }

func (n *node) total() (t sum) {
	for _, e := range n.entries {
		t.add(e.sum())
	}
	for i := range n.kids {
		t.add(n.kids[i].sum)
	}
	return t
}

// below adds up what is less than key.
func (n *node) below(key string) (t sum) {
	for n.kids != nil {
		k := n.kidOf(key)
		for i := range k {
			t.add(n.kids[i].sum)
		}
		n = n.kids[k].node
	}
	for _, e := range n.entries {
		if e.key >= key {
			break
		}
		t.add(e.sum())
	}
	return t
}

func (n *node) ascend(s span, each func(*entry) bool) bool {
	if n.kids == nil {
		i, _ := n.find(s.start)
		for _, e := range n.entries[i:] {
			if !s.open && e.key >= s.end || !each(e) {
				return false
			}
		}
		return true
	}
	for i := n.kidOf(s.start); i < len(n.kids); i++ {
		k := &n.kids[i]
		if !s.open && k.low >= s.end && i > 0 || !k.ascend(s, each) {
			return false
		}
	}
	return true
}

// update is index.update below one node. It returns by how much the node's sum
// changed, and a new right neighbour if the node had to be split.
func (n *node) update(key string, change func(*entry), keys *int) (delta sum, grown *kid) {
	if n.kids == nil {
		delta = n.updateLeaf(key, change, keys)
	} else {
		i := n.kidOf(key)
		k := &n.kids[i]
		var right *kid
		delta, right = k.update(key, change, keys)
		k.sum.add(delta)
		switch {
		case right != nil:
			k.sum.sub(right.sum)
			n.kids = insertAt(n.kids, i+1, *right)
		case k.size() < minNode && len(n.kids) > 1:
			n.rebalance(max(i-1, 0))
		}
	}
	if n.size() > maxNode {
		grown = n.split()
	}
	return delta, grown
}

func (n *node) updateLeaf(key string, change func(*entry), keys *int) sum {
	i, ok := n.find(key)
	if !ok {
		n.entries = insertAt(n.entries, i, &entry{key: key})
		*keys++
	}
	e := n.entries[i]
	before := e.sum()
	change(e)
	delta := e.sum()
	delta.sub(before)
	if e.last.main == 0 {
		n.entries = removeAt(n.entries, i)
		*keys--
	}
	return delta
}

func (n *node) updateRange(s span, change func(*entry)) (delta sum) {
	if n.kids == nil {
		i, _ := n.find(s.start)
		for _, e := range n.entries[i:] {
			if !s.open && e.key >= s.end {
				break
			}
			delta.sub(e.sum())
			change(e)
			delta.add(e.sum())
		}
		return delta
	}
	for i := n.kidOf(s.start); i < len(n.kids); i++ {
		k := &n.kids[i]
		if !s.open && k.low >= s.end && i > 0 {
			break
		}
		d := k.updateRange(s, change)
		k.sum.add(d)
		delta.add(d)
	}
	return delta
}

// split moves the upper half to a new node.
func (n *node) split() *kid {
	right := new(node)
	if n.kids == nil {
		right.entries = cutHalf(&n.entries)
		k := newKid(right.entries[0].key, right)
		return &k
	}
	right.kids = cutHalf(&n.kids)
	k := newKid(right.kids[0].low, right)
	return &k
}

// rebalance merges children i and i+1, or shares out what they hold.
func (n *node) rebalance(i int) {
	a, b := &n.kids[i], &n.kids[i+1]
	a.entries = append(a.entries, b.entries...)
	a.kids = append(a.kids, b.kids...)
	a.sum.add(b.sum)
	if a.size() <= maxNode*3/4 {
		n.kids = removeAt(n.kids, i+1)
		return
	}
	right := a.split()
	a.sum.sub(right.sum)
	n.kids[i+1] = *right
}

func insertAt[T any](s []T, i int, v T) []T {
	if cap(s) == 0 {
		s = make([]T, 0, 4)
	}
	s = append(s, v)
	copy(s[i+1:], s[i:])
	s[i] = v
	return s
}

func removeAt[T any](s []T, i int) []T {
	var zero T
	copy(s[i:], s[i+1:])
	s[len(s)-1] = zero
	return s[:len(s)-1]
}

// cutHalf takes the upper half off *s.
func cutHalf[T any](s *[]T) []T {
	mid := len(*s) / 2
	right := append(make([]T, 0, maxNode+1), (*s)[mid:]...)
	clear((*s)[mid:])
	*s = (*s)[:mid]
	return right
}
