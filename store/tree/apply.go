package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Apply makes the changes of b durable in one transaction. Nothing is written if
// they change nothing. The batch's memory may be reused when Apply returns.
//
// An error that matches vfs.IsNoSpace leaves the tree as it was, and Apply can be tried
// again. Any other error matches ErrFailed, ErrReadOnly or ErrClosed and is final.
func (t *Tree) Apply(b *Batch) error {
	t.write.Lock()
	defer t.write.Unlock()
	if err := t.writable(); err != nil {
		return err
	}
	h := t.handle // only changes under t.write
	if h == nil {
		return pathError("write", t.opts.Path, ErrClosed)
	}
	err := t.applyTo(h, b)
	t.measure(h)
	return err
}

func (t *Tree) applyTo(h *handle, b *Batch) error {
	h.db.NoFreelistSync = b.More
	defer func() { h.db.NoFreelistSync = false }()
	return t.update(h, func(tx *bolt.Tx) (bool, error) {
		a := applier{tx: tx}
		err := a.run(b)
		return a.changed, err
	})
}

// update makes what fn changes durable, if it says that it did.
func (t *Tree) update(h *handle, fn func(tx *bolt.Tx) (changed bool, err error)) error {
	before, err := h.version()
	if err != nil {
		return t.failWrite(err)
	}
	var tx *bolt.Tx
	err = guard("write", t.opts.Path, func() (err error) {
		if tx, err = h.db.Begin(true); err != nil {
			return err
		}
		if changed, err := fn(tx); err != nil || !changed {
			return err
		}
		return t.commit(tx)
	})
	h.abandon(tx) // does nothing after a commit
	if err == nil {
		return nil
	}
	if !noSpace(err) {
		return t.failWrite(err)
	}
	// Without space bbolt gives up before it writes the page that makes
	// the transaction visible. If it is visible all the same, only the
	// sync failed, and nobody knows what the disk holds.
	after, vErr := h.version()
	if vErr != nil || after != before {
		return t.failWrite(err)
	}
	t.reclaim(h)
	return pathError("write", t.opts.Path, noSpaceError{err})
}

func (t *Tree) commit(tx *bolt.Tx) error {
	start := time.Now()
	if err := t.opts.FS.Commit(t.opts.Path, tx.Commit); err != nil {
		return err
	}
	if t.opts.ObserveCommit != nil {
		t.opts.ObserveCommit(time.Since(start))
	}
	return nil
}

func (t *Tree) failWrite(err error) error {
	return t.fail(pathError("write", t.opts.Path, fmt.Errorf("%w: %w; restart to recover from the log", ErrFailed, err)))
}

// applier puts one batch into a transaction and notes whether it changed.
type applier struct {
	tx      *bolt.Tx
	changed bool
}

func (a *applier) run(b *Batch) error {
	if err := createMissing(a.tx, &a.changed); err != nil {
		return err
	}
	if err := writeVersions(a.tx, &a.changed); err != nil {
		return err
	}
	for _, step := range []func(*Batch) error{a.remove, a.put, a.leases, a.alarms, a.auth, a.meta, a.member} {
		if err := step(b); err != nil {
			return err
		}
	}
	return nil
}

// createMissing completes a file that came from elsewhere.
func createMissing(tx *bolt.Tx, changed *bool) error {
	for _, name := range allBuckets {
		if tx.Bucket(name) == nil {
			*changed = true
			return createBuckets(tx)
		}
	}
	return nil
}

func (a *applier) remove(b *Batch) error {
	bucket := a.tx.Bucket(bucketKey)
	var buf [tombstoneLen]byte
	cur := bucket.Cursor()
	for _, d := range b.Delete {
		k := d.Rev.AppendKey(buf[:0], d.Tombstone)
		if found, _ := cur.Seek(k); !bytes.Equal(found, k) {
			continue
		}
		a.changed = true
		if err := cur.Delete(); err != nil {
			return fmt.Errorf("delete record %x: %w", k, err)
		}
	}
	return nil
}

func (a *applier) put(b *Batch) error {
	bucket := a.tx.Bucket(bucketKey)
	// Records arrive in the order of their keys, so that a full page never
	// gets another one.
	bucket.FillPercent = 1
	var buf [tombstoneLen]byte
	for i := range b.Put {
		r := &b.Put[i]
		a.changed = true
		k := r.Rev.AppendKey(buf[:0], r.Tombstone)
		if err := bucket.Put(k, r.Value); err != nil {
			return fmt.Errorf("put record %x: %w", k, err)
		}
	}
	return nil
}

func (a *applier) leases(b *Batch) error {
	bucket := a.tx.Bucket(bucketLease)
	for _, id := range b.LeaseDelete {
		if err := unset(bucket, leaseKey(id), &a.changed); err != nil {
			return err
		}
	}
	for _, l := range b.LeasePut {
		if err := set(bucket, leaseKey(l.ID), l.encode(), &a.changed); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) alarms(b *Batch) error {
	bucket := a.tx.Bucket(bucketAlarm)
	for _, r := range b.AlarmDelete {
		if err := unset(bucket, r.key(), &a.changed); err != nil {
			return err
		}
	}
	for _, r := range b.AlarmPut {
		if err := set(bucket, r.key(), r.value(), &a.changed); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) meta(b *Batch) error {
	bucket := a.tx.Bucket(bucketMeta)
	fields := map[string][]byte{}
	if b.Seq != nil {
		fields[string(metaIndex)] = binary.BigEndian.AppendUint64(nil, *b.Seq)
	}
	if b.Term != nil {
		fields[string(metaTerm)] = binary.BigEndian.AppendUint64(nil, uint64(*b.Term))
	}
	if b.ScheduledCompact != nil {
		fields[string(metaScheduledCompact)] = Revision{Main: *b.ScheduledCompact}.AppendKey(nil, false)
	}
	if b.FinishedCompact != nil {
		fields[string(metaFinishedCompact)] = Revision{Main: *b.FinishedCompact}.AppendKey(nil, false)
	}
	for k, v := range fields {
		if err := set(bucket, []byte(k), v, &a.changed); err != nil {
			return err
		}
	}
	if b.StoreID != nil {
		return set(a.tx.Bucket(bucketPrivate), privateStoreID, b.StoreID[:], &a.changed)
	}
	return nil
}

func (a *applier) member(b *Batch) error {
	if b.Member == nil {
		return nil
	}
	bucket := a.tx.Bucket(bucketMembers)
	var others [][]byte
	err := bucket.ForEach(func(k, _ []byte) error {
		if !bytes.Equal(k, b.Member.key()) {
			others = append(others, bytes.Clone(k))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range others {
		if err := unset(bucket, k, &a.changed); err != nil {
			return err
		}
	}
	text, err := json.Marshal(b.Member)
	if err != nil {
		return fmt.Errorf("encode member %x: %w", b.Member.ID, err)
	}
	if err := set(bucket, b.Member.key(), text, &a.changed); err != nil {
		return err
	}
	return set(a.tx.Bucket(bucketMeta), metaConfState, b.Member.confState(), &a.changed)
}

// writeVersions says which version of etcd's schema this is.
func writeVersions(tx *bolt.Tx, changed *bool) error {
	if err := set(tx.Bucket(bucketMeta), metaStorageVersion, []byte(schemaVersion), changed); err != nil {
		return err
	}
	return set(tx.Bucket(bucketCluster), clusterVersion, []byte(schemaVersion), changed)
}

// set puts a value if it differs from what is there.
func set(b *bolt.Bucket, k, v []byte, changed *bool) error {
	if old := b.Get(k); old != nil && bytes.Equal(old, v) {
		return nil
	}
	*changed = true
	if err := b.Put(k, v); err != nil {
		return fmt.Errorf("put %q: %w", k, err)
	}
	return nil
}

func unset(b *bolt.Bucket, k []byte, changed *bool) error {
	if b.Get(k) == nil {
		return nil
	}
	*changed = true
	if err := b.Delete(k); err != nil {
		return fmt.Errorf("delete %q: %w", k, err)
	}
	return nil
}
