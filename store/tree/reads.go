package tree

import (
	"sync"

	bolt "go.etcd.io/bbolt"
)

// readTx is a read transaction on one of the tree's files.
type readTx struct {
	*bolt.Tx
	handle *handle
	since  uint64 // it sees this transaction or a later one
}

// openReads counts the open reads of a file by how old what they see may be. What is free in
// the newest transaction and in the one before is of no use to a read of either; an older one may need it.
type openReads struct {
	mu                    sync.Mutex
	newest                uint64 // transaction
	atNewest, before, old int    // reads since the newest transaction, the one before, an older one
}

// begin is called before a read transaction begins, so that it is never missed.
func (r *openReads) begin() (since uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atNewest++
	return r.newest
}

func (r *openReads) end(since uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.newest - since {
	case 0:
		r.atNewest--
	case 1:
		r.before--
	default:
		r.old--
	}
}

// committed is called with the newest transaction after a commit.
func (r *openReads) committed(transaction uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch transaction - r.newest {
	case 0:
		return
	case 1:
		r.old, r.before, r.atNewest = r.old+r.before, r.atNewest, 0
	default:
		r.old, r.before, r.atNewest = r.old+r.before+r.atNewest, 0, 0
	}
	r.newest = transaction
}

// older tells whether reads are open that may see what was before the newest transaction, and
// before the one before that.
func (r *openReads) older() (thanNewest, thanBefore bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.before+r.old > 0, r.old > 0
}

// read starts a read transaction on the current handle.
func (t *Tree) read() (readTx, error) {
	t.current.RLock()
	h := t.handle
	if h == nil {
		t.current.RUnlock()
		return readTx{}, pathError("read", t.opts.Path, ErrClosed)
	}
	h.refs.Add(1)
	t.current.RUnlock()
	since := h.reads.begin()
	tx, err := h.db.Begin(false)
	if err != nil {
		h.reads.end(since)
		h.release()
		return readTx{}, pathError("read", t.opts.Path, err)
	}
	t.reads.Add(1)
	return readTx{tx, h, since}, nil
}

func (t *Tree) endRead(tx readTx) {
	_ = tx.Rollback() // only fails for a transaction that has ended
	tx.handle.reads.end(tx.since)
	t.reads.Add(-1)
	tx.handle.release()
}

// inRead runs fn inside a read transaction and turns the panics of bbolt on a
// damaged file, and faults of the mapping, into ErrDamaged.
func (t *Tree) inRead(op string, fn func(tx *bolt.Tx) error) error {
	tx, err := t.read()
	if err != nil {
		return err
	}
	defer t.endRead(tx)
	return guard(op, t.opts.Path, func() error { return fn(tx.Tx) })
}
