package store

import (
	"sync"
	"sync/atomic"
)

// memory is what a store keeps in memory of its key space. Only the sequencer and
// the compaction change it, under mu; readers hold mu for reading, for the
// time of a bounded number of entries, and see a revision ≤ published.
type memory struct {
	mu    sync.RWMutex
	index index
	// changes has every change since the floor, in order: what watchers that
	// are behind read, what compaction works off, and what makes counts at a
	// recent revision cheap.
	changes deque[change]
	// tail has the changes since the last checkpoint with their values.
	tail      deque[tailRecord]
	tailBytes atomic.Int64
	// prefixes counts what is durable for each prefix: records and writes.
	prefixes prefixCounts
	// floor is the revision up to which superseded records are gone.
	floor int64
	// marks are the records without a key, ascending, by which etcd's restore marks a revision
	// that was moved forward. They do not change.
	marks []Revision
}

// change is one record in revision order.
type change struct {
	entry *entry
	main  int64
	sub   int32
	delta int8 // live keys: +1 created, -1 deleted, 0 updated
}

// tailRecord is a change that is not in the tree yet.
type tailRecord struct {
	entry *entry
	main  int64
	sub   int32
	value []byte // encoded KeyValue, also of a tombstone
}

const tailOverhead = 64 // bytes counted per record of the tail beside its value

// append makes r the newest record of key. mu is held.
func (m *memory) append(key string, r record, value []byte) {
	m.index.update(key, func(e *entry) { m.appendTo(e, r, value) })
}

// appendTo is append for a caller that updates the index.
func (m *memory) appendTo(e *entry, r record, value []byte) {
	before := e.last
	e.push(r)
	m.note(e, &r, &before)
	m.tail.push(tailRecord{entry: e, main: r.main, sub: r.sub, value: value})
	m.tailBytes.Add(int64(len(value)) + tailOverhead)
}

// load is append for a record that the tree holds already.
func (m *memory) load(key string, r record) {
	m.prefixes.added(key, int(r.size))
	m.index.update(key, func(e *entry) {
		before := e.last
		e.push(r)
		// Of what lies below the compact revision, only what a compaction that was
		// cut short has left behind is of interest.
		if r.main >= m.floor || before.main != 0 || r.tombstone() {
			m.note(e, &r, &before)
		}
	})
}

// note keeps a change for those who read in revision order.
func (m *memory) note(e *entry, r, before *record) {
	c := change{entry: e, main: r.main, sub: r.sub}
	switch was, is := before.version > 0, r.version > 0; {
	case is && !was:
		c.delta = 1
	case was && !is:
		c.delta = -1
	}
	m.changes.push(c)
}

// undo takes the newest change back and returns its key, its record and the
// key's record before it. mu is held.
func (m *memory) undo() (key string, undone, before record) {
	c := *m.changes.at(m.changes.len() - 1)
	key = c.entry.key
	m.index.update(key, func(x *entry) {
		undone = x.pop()
		before = x.last
	})
	t := m.tail.at(m.tail.len() - 1)
	m.tailBytes.Add(-int64(len(t.value)) - tailOverhead)
	m.tail.popBack()
	m.changes.popBack()
	return key, undone, before
}

// changesFrom returns the position of the first change with main ≥ rev.
func (m *memory) changesFrom(rev int64) int {
	return m.changesFromRevision(Revision{Main: rev})
}

// changesFromRevision is changesFrom for a change inside a transaction.
func (m *memory) changesFromRevision(rev Revision) int {
	return m.changes.search(func(c *change) bool {
		return c.main > rev.Main || c.main == rev.Main && int64(c.sub) >= rev.Sub
	})
}

// manyChangesFrom is how many changes are too many to make events of at once.
const manyChangesFrom = 4096

// manyChanges tells whether there are many changes in (from, to], and returns a range with
// the keys of all of them. It takes the lock.
func (m *memory) manyChanges(from, to int64) (hull span, many bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	first, end := m.changesFrom(from+1), m.changesFrom(to+1)
	if end-first < manyChangesFrom {
		return span{}, false
	}
	lowest, highest := m.changes.at(first).entry.key, m.changes.at(first).entry.key
	for i := first + 1; i < end; i++ {
		key := m.changes.at(i).entry.key
		lowest, highest = min(lowest, key), max(highest, key)
	}
	return span{start: lowest, end: highest + "\x00"}, true
}

// tailValue returns the value of a record that is in the tail.
func (m *memory) tailValue(main int64, sub int32) ([]byte, bool) {
	at := -1
	return m.tailValueNear(&at, main, sub)
}

// tailValueNear is tailValue for one who reads in the order of revisions: the record after the one
// at *at is looked at first. It sets *at to the place of the record if there is one.
func (m *memory) tailValueNear(at *int, main int64, sub int32) ([]byte, bool) {
	n := m.tail.len()
	if n == 0 || main < m.tail.at(0).main {
		return nil, false
	}
	if i := *at + 1; 0 < i && i < n {
		if t := m.tail.at(i); t.main == main && t.sub == sub {
			*at = i
			return t.value, true
		}
	}
	i := m.tail.search(func(t *tailRecord) bool { return t.main > main || t.main == main && t.sub >= sub })
	if i == n {
		return nil, false
	}
	if t := m.tail.at(i); t.main == main && t.sub == sub {
		*at = i
		return t.value, true
	}
	return nil, false
}

// countAt counts the live keys of a span at a revision ≤ head: the count at the head
// less what changed since. ok is false if so much has changed that a walk is cheaper.
func (m *memory) countAt(s span, rev int64) (n int64, ok bool) {
	n = m.index.sumOf(s).live
	from := m.changesFrom(rev + 1)
	if m.changes.len()-from > 100_000 || rev < m.floor {
		return 0, false
	}
	for i := from; i < m.changes.len(); i++ {
		if c := m.changes.at(i); c.delta != 0 && s.contains(c.entry.key) {
			n -= int64(c.delta)
		}
	}
	return n, true
}

// dropTail removes from the tail what the tree has: everything up to rev.
func (m *memory) dropTail(rev int64) {
	n := m.tail.search(func(t *tailRecord) bool { return t.main > rev })
	for i := range n {
		m.tailBytes.Add(-int64(len(m.tail.at(i).value)) - tailOverhead)
	}
	m.tail.dropFront(n)
}
