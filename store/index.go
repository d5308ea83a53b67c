package store

// index holds an entry per key in key order: a B+ tree whose inner nodes know how
// many live keys, and bytes of live records, lie below each child. So the
// count and the size of any range at the current head are found in O(log n).
//
// It is guarded by Store.mem.
type index struct {
	root node
	keys int // entries, live or not
}

const (
	maxNode = 64
	minNode = maxNode / 4
)

// sum is what is added up along the tree.
type sum struct {
	live  int64 // live keys
	bytes int64 // encoded bytes of their newest records
}

func (s *sum) add(o sum) { s.live += o.live; s.bytes += o.bytes }
func (s *sum) sub(o sum) { s.live -= o.live; s.bytes -= o.bytes }

func (e *entry) sum() sum {
	if !e.live() {
		return sum{}
	}
	return sum{1, int64(e.last.size)}
}

// node is a leaf (entries) or an inner node (kids); an empty node is an empty leaf.
type node struct {
	entries []*entry
	kids    []kid
}

// kid is a child with the sum over it. All its keys are ≥ low.
type kid struct {
	low string
	sum sum
	*node
}

// get returns the entry of key, or nil.
func (x *index) get(key string) *entry {
	n := &x.root
	for n.kids != nil {
		n = n.kids[n.kidOf(key)].node
	}
	if i, ok := n.find(key); ok {
		return n.entries[i]
	}
	return nil
}

// update calls change with the entry of key, which is made if missing, and
// keeps the sums right. An entry without a record after that is removed.
func (x *index) update(key string, change func(*entry)) {
	_, grown := x.root.update(key, change, &x.keys)
	if grown != nil {
		left := x.root
		x.root = node{kids: []kid{newKid("", &left), *grown}}
	}
	if len(x.root.kids) == 1 {
		x.root = *x.root.kids[0].node
	}
}

// updateRange calls change with each entry of a span in key order, and keeps the sums
// right. change must leave the entry a record. It costs a fraction of update for each.
func (x *index) updateRange(s span, change func(*entry)) {
	if !s.empty() {
		x.root.updateRange(s, change)
	}
}

// sumOf adds up a span.
func (x *index) sumOf(s span) sum {
	if s.empty() {
		return sum{}
	}
	var total sum
	if s.open {
		total = x.root.total()
	} else {
		total = x.root.below(s.end)
	}
	total.sub(x.root.below(s.start))
	return total
}

// ascend calls each for the entries of a span in key order until it returns false.
func (x *index) ascend(s span, each func(*entry) bool) {
	if !s.empty() {
		x.root.ascend(s, each)
	}
}
