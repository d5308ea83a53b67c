package store

// record is one version of a key as the index knows it: everything but the value.
type record struct {
	main    int64
	create  int64
	version int64 // 0 for a tombstone
	lease   int64
	sub     int32
	size    int32 // bytes of the encoded KeyValue
}

func (r *record) rev() Revision   { return Revision{Main: r.main, Sub: int64(r.sub)} }
func (r *record) tombstone() bool { return r.version == 0 }

// entry is the history of one key: its uncompacted records in ascending order.
// Most keys have one record, so the newest is kept apart from the others.
// An entry in the index always has at least one record.
type entry struct {
	key   string
	last  record
	older []record
}

func (e *entry) live() bool { return e.last.version > 0 }

func (e *entry) item(r *record) Item {
	return Item{Key: e.key, Create: r.create, Rev: r.rev(), Version: r.version, Lease: r.lease, Size: int(r.size)}
}

// at returns the newest record with main ≤ rev, or nil.
func (e *entry) at(rev int64) *record {
	if e.last.main <= rev {
		if e.last.main == 0 {
			return nil
		}
		return &e.last
	}
	for i := len(e.older) - 1; i >= 0; i-- {
		if e.older[i].main <= rev {
			return &e.older[i]
		}
	}
	return nil
}

// liveAt returns the record that a read at rev sees, or nil.
func (e *entry) liveAt(rev int64) *record {
	if r := e.at(rev); r != nil && !r.tombstone() {
		return r
	}
	return nil
}

// find returns the record of exactly that revision, or nil.
func (e *entry) find(main int64, sub int32) *record {
	if e.last.main == main && e.last.sub == sub {
		return &e.last
	}
	for i := len(e.older) - 1; i >= 0 && e.older[i].main >= main; i-- {
		if e.older[i].main == main && e.older[i].sub == sub {
			return &e.older[i]
		}
	}
	return nil
}

// push makes r the newest record.
func (e *entry) push(r record) {
	if e.last.main != 0 {
		e.older = append(e.older, e.last)
	}
	e.last = r
}

// pop takes the newest record away, and returns it.
func (e *entry) pop() record {
	r := e.last
	if n := len(e.older); n > 0 {
		e.last = e.older[n-1]
		e.older = e.older[:n-1]
	} else {
		e.last = record{}
	}
	return r
}

// prune removes what no read at or above floor can see of the records up to a change
// at or below floor: those before it, and its own if a newer one at or below floor
// supersedes it, or if it is a tombstone below floor (one exactly at floor stays, for
// watches that start there). It appends the removed ones to dead.
//
// Compaction goes from change to change, so records leave in the order of their revisions,
// in which they lie in the tree: whole pages at a time.
func (e *entry) prune(main int64, sub int32, floor int64, dead []record) []record {
	for len(e.older) > 0 && e.older[0].before(main, sub) {
		dead = e.shift(dead)
	}
	first := &e.last
	if len(e.older) > 0 {
		first = &e.older[0]
	}
	if first.main != main || first.sub != sub {
		return dead // removed by a compaction before
	}
	superseded := false
	switch {
	case len(e.older) > 1:
		superseded = e.older[1].main <= floor
	case len(e.older) == 1:
		superseded = e.last.main <= floor
	}
	if superseded || first.tombstone() && main < floor {
		dead = e.shift(dead)
	}
	return dead
}

func (r *record) before(main int64, sub int32) bool {
	return r.main < main || r.main == main && r.sub < sub
}

// shift moves the oldest record to dead.
func (e *entry) shift(dead []record) []record {
	if len(e.older) == 0 {
		dead = append(dead, e.last)
		e.last = record{}
		return dead
	}
	dead = append(dead, e.older[0])
	if e.older = e.older[1:]; len(e.older) == 0 {
		e.older = nil
	}
	return dead
}
