package tree

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// StoreID names a store for its whole life.
type StoreID = [16]byte

// Meta is what the file says about itself.
type Meta struct {
	StoreID          StoreID // zero if none was set, as in a file of etcd's
	Seq              uint64  // log sequence that the tree includes (etcd's consistent index)
	Term             int64
	ScheduledCompact int64 // -1 if there was none
	FinishedCompact  int64 // -1 if there was none
	// Revision is the largest of the last record's main revision and the two above,
	// and at least 0.
	Revision       int64
	StorageVersion string // "" if absent
}

// Meta reads the file's own data.
func (t *Tree) Meta() (m Meta, err error) {
	err = t.inRead("read the meta data of", func(tx *bolt.Tx) error {
		if m, err = readMeta(tx); err != nil {
			return damaged("read", t.opts.Path, err)
		}
		return nil
	})
	return m, err
}

func readMeta(tx *bolt.Tx) (m Meta, err error) {
	b := tx.Bucket(bucketMeta)
	if m.Seq, err = number(metaIndex, b.Get(metaIndex)); err != nil {
		return Meta{}, err
	}
	term, err := number(metaTerm, b.Get(metaTerm))
	if err != nil {
		return Meta{}, err
	}
	m.Term = int64(term)
	if m.ScheduledCompact, err = compactRevision(metaScheduledCompact, b.Get(metaScheduledCompact)); err != nil {
		return Meta{}, err
	}
	if m.FinishedCompact, err = compactRevision(metaFinishedCompact, b.Get(metaFinishedCompact)); err != nil {
		return Meta{}, err
	}
	m.StorageVersion = string(b.Get(metaStorageVersion))
	if m.StoreID, err = readStoreID(tx); err != nil {
		return Meta{}, err
	}
	m.Revision = max(0, m.ScheduledCompact, m.FinishedCompact)
	if k, _ := tx.Bucket(bucketKey).Cursor().Last(); k != nil {
		r, _, ok := ParseKey(k)
		if !ok {
			return Meta{}, fmt.Errorf("the last record's key is not a revision (%x)", k)
		}
		m.Revision = max(m.Revision, r.Main)
	}
	return m, nil
}

// readStoreID returns the store's ID, zero if it has none yet.
func readStoreID(tx *bolt.Tx) (id StoreID, err error) {
	p := tx.Bucket(bucketPrivate)
	if p == nil {
		return id, nil
	}
	value := p.Get(privateStoreID)
	if value != nil && len(value) != len(id) {
		return id, fmt.Errorf("the store id has %d bytes instead of %d", len(value), len(id))
	}
	copy(id[:], value)
	return id, nil
}

// ReadStoreID reads the store's ID, zero if it has none yet, from a file that nobody writes to. It looks at the
// few pages on the way there and at no records, so a large file takes no longer. The errors are those
// of Open for reading.
func ReadStoreID(path string) (id StoreID, err error) {
	h, err := openHandle(path, Options{Path: path}.withDefaults(), modeBrief)
	if err != nil {
		return id, err
	}
	err = guard("read the store id of", path, func() error {
		return h.db.View(func(tx *bolt.Tx) error {
			if tx.Bucket(bucketKey) == nil || tx.Bucket(bucketMeta) == nil {
				return pathError("open", path, ErrForeign)
			}
			if id, err = readStoreID(tx); err != nil {
				return damaged("read", path, err)
			}
			return nil
		})
	})
	h.release()
	return id, errors.Join(err, h.closeErr)
}

// Leases returns the leases in the tree in the order of their keys.
func (t *Tree) Leases() (leases []LeaseRecord, err error) {
	err = t.each("read the leases of", bucketLease, func(k, v []byte) error {
		l, err := decodeLease(k, v)
		leases = append(leases, l)
		return err
	})
	return leases, err
}

// Alarms returns the active alarms.
func (t *Tree) Alarms() (alarms []AlarmRecord, err error) {
	err = t.each("read the alarms of", bucketAlarm, func(k, v []byte) error {
		a, err := decodeAlarm(k)
		a.Own = bytes.Equal(v, ownAlarm)
		alarms = append(alarms, a)
		return err
	})
	return alarms, err
}

// Member returns the cluster's one member. ok is false if there is none, and
// also in a file of a larger cluster, where no one member is ours.
func (t *Tree) Member() (m MemberRecord, ok bool, err error) {
	n := 0
	err = t.each("read the member of", bucketMembers, func(k, v []byte) (err error) {
		n++
		m, err = decodeMember(k, v)
		return err
	})
	if err != nil || n != 1 {
		return MemberRecord{}, false, err
	}
	return m, true, nil
}

// each calls fn for the records of a bucket; an error of fn means damage.
func (t *Tree) each(op string, bucket []byte, fn func(k, v []byte) error) error {
	return t.inRead(op, func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return nil
		}
		if err := b.ForEach(fn); err != nil {
			return damaged(op, t.opts.Path, err)
		}
		return nil
	})
}
