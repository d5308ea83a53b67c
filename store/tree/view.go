package tree

import "runtime/debug"

// View is a read transaction: it sees the tree as it was when it was opened. It
// is used by one goroutine and must be closed soon, because pages that it sees
// can not be reused.
type View struct {
	tree *Tree
	tx   readTx
	err  error

	lookup  lookup
	noPages bool // the bucket lives inside its parent's page
	key     [tombstoneLen]byte
}

// View opens a read transaction. It never fails: if the tree is closed the view is
// empty and Err tells why.
func (t *Tree) View() *View {
	v := &View{tree: t}
	if v.tx, v.err = t.read(); v.err != nil {
		return v
	}
	v.err = guard("read", t.opts.Path, func() error {
		lookup, ok := newLookup(v.tx.handle, v.tx.Tx)
		v.lookup, v.noPages = lookup, !ok
		return nil
	})
	return v
}

// Err returns the error that made the view blind: ErrClosed, or ErrDamaged
// after a read met a bad page. Get and Last find nothing after it.
func (v *View) Err() error { return v.err }

// Close ends the transaction. What Get returned is not valid any more.
func (v *View) Close() {
	if v.tx.Tx == nil {
		return
	}
	v.tree.endRead(v.tx)
	*v = View{err: pathError("read", v.tree.opts.Path, ErrClosed)}
}

// Get returns the record of a put: the encoded mvccpb.KeyValue, valid until
// Close. ok is false if there is none, or if Err is not nil.
func (v *View) Get(rev Revision) (value []byte, ok bool) {
	if v.err == nil {
		v.err = v.guarded(func() error {
			value, ok = v.get(rev)
			return nil
		})
	}
	return value, ok && v.err == nil
}

// Each calls found with the record of each of n puts, by rising i, or with nil where
// there is none. An error of found ends it and is returned, as is ErrDamaged when a
// page is bad, also if it can not be read by found.
func (v *View) Each(n int, rev func(i int) Revision, found func(i int, value []byte) error) error {
	if v.err != nil {
		return v.err
	}
	var failed error
	v.err = v.guarded(func() error {
		for i := range n {
			value, _ := v.get(rev(i))
			if failed = found(i, value); failed != nil {
				return nil
			}
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return v.err
}

func (v *View) guarded(fn func() error) error { return guard("read", v.tree.opts.Path, fn) }

func (v *View) get(rev Revision) ([]byte, bool) {
	if !v.noPages {
		return v.lookup.get(rev)
	}
	value := v.tx.Bucket(bucketKey).Get(rev.AppendKey(v.key[:0], false))
	return value, value != nil
}

// Scan calls each for the records from a revision on, ascending, until it
// returns false. The values are valid until Close. A record may have an empty
// value (DSK-17). A scan from the zero revision reads the whole file ahead.
func (v *View) Scan(from Revision, each func(rev Revision, tombstone bool, value []byte) bool) (err error) {
	if v.err != nil {
		return v.err
	}
	if from == (Revision{}) {
		defer v.tx.handle.readAhead(v.tx.Size())()
	}
	old := debug.SetPanicOnFault(true)
	inEach := false
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			if inEach && !isFault(r) {
				panic(r) // not ours
			}
			v.err = damaged("scan", v.tree.opts.Path, r)
			err = v.err
		}
	}()
	cur := v.tx.Bucket(bucketKey).Cursor()
	for k, value := cur.Seek(from.AppendKey(v.key[:0], false)); k != nil; k, value = cur.Next() {
		rev, dead, ok := ParseKey(k)
		if !ok {
			return damaged("scan", v.tree.opts.Path, badKey(k))
		}
		inEach = true
		more := each(rev, dead, value)
		inEach = false
		if !more {
			return nil
		}
	}
	return nil
}

// Last returns the revision of the last record; ok is false if there is none.
func (v *View) Last() (rev Revision, ok bool) {
	if v.err != nil {
		return Revision{}, false
	}
	v.err = guard("read", v.tree.opts.Path, func() error {
		k, _ := v.tx.Bucket(bucketKey).Cursor().Last()
		if k == nil {
			return nil
		}
		if rev, _, ok = ParseKey(k); !ok {
			return damaged("read", v.tree.opts.Path, badKey(k))
		}
		return nil
	})
	return rev, ok && v.err == nil
}
