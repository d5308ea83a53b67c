package tree

import (
	"bytes"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
)

// nearby is the distance, in revisions, up to which Get walks forward instead of
// searching from the root: a step costs a fraction of a search.
const nearby = 8

// View is a read transaction: it sees the tree as it was when it was opened. It
// is used by one goroutine and must be closed soon, because pages that it sees
// can not be reused.
type View struct {
	tree   *Tree
	handle *handle
	tx     *bolt.Tx
	err    error

	// cursor of Get, its key, and the revision of that key.
	cursor *bolt.Cursor
	found  []byte
	value  []byte
	at     Revision
	key    [tombstoneLen]byte
}

// View opens a read transaction. It never fails: if the tree is closed the view is
// empty and Err tells why.
func (t *Tree) View() *View {
	v := &View{tree: t}
	if v.tx, v.handle, v.err = t.read(); v.err != nil {
		return v
	}
	v.err = guard("read", t.opts.Path, func() error {
		v.cursor = v.tx.Bucket(bucketKey).Cursor()
		return nil
	})
	return v
}

// Err returns the error that made the view blind: ErrClosed, or ErrDamaged
// after a read met a bad page. Get and Last find nothing after it.
func (v *View) Err() error { return v.err }

// Close ends the transaction. What Get returned is not valid any more.
func (v *View) Close() {
	if v.tx == nil {
		return
	}
	v.tree.endRead(v.tx, v.handle)
	*v = View{err: pathError("read", v.tree.opts.Path, ErrClosed)}
}

// Get returns the record of a put: the encoded mvccpb.KeyValue, valid until
// Close. ok is false if there is none, or if Err is not nil. Asking in ascending
// order is cheapest.
func (v *View) Get(rev Revision) (value []byte, ok bool) {
	if v.err != nil {
		return nil, false
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			v.err = damaged("read", v.tree.opts.Path, r)
			value, ok = nil, false
		}
	}()
	key := rev.AppendKey(v.key[:0], false)
	v.seek(rev, key)
	if !bytes.Equal(v.found, key) {
		return nil, false
	}
	return v.value, true
}

// seek moves the cursor to the first record at or after key.
func (v *View) seek(rev Revision, key []byte) {
	if v.found != nil && rev.Compare(v.at) > 0 && rev.Main-v.at.Main <= nearby {
		for range nearby {
			v.found, v.value = v.cursor.Next()
			if v.found == nil || bytes.Compare(v.found, key) >= 0 {
				v.note()
				return
			}
		}
	}
	v.found, v.value = v.cursor.Seek(key)
	v.note()
}

// note keeps the revision that the cursor is at.
func (v *View) note() {
	r, _, ok := ParseKey(v.found)
	if !ok {
		v.found, v.value = nil, nil
	}
	v.at = r
}

// Scan calls each for the records from a revision on, ascending, until it
// returns false. The values are valid until Close. A record may have an empty
// value (DSK-17). A scan from the zero revision reads the whole file ahead.
func (v *View) Scan(from Revision, each func(rev Revision, tombstone bool, value []byte) bool) (err error) {
	if v.err != nil {
		return v.err
	}
	if from == (Revision{}) {
		defer v.handle.readAhead(v.tx.Size())()
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
