package store

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/tree"
)

// KeyValue is a key with all that is stored of it.
type KeyValue struct {
	Item
	Value []byte
}

const (
	viewStep  = 256     // records read at once by a scan
	viewBytes = 1 << 20 // and about how many bytes of them
)

// at returns the revision to read for rev, where rev ≤ 0 means the newest one.
func (v *View) at(rev int64) (int64, error) {
	if rev <= 0 {
		return v.Revision(), nil
	}
	return rev, checkRevision(rev, v.Revision(), v.CompactRevision())
}

// Items goes through the live keys of a range at a revision, in key order; rev ≤ 0 means the newest
// one. The values are not read.
//
// ErrFutureRev and ErrCompacted are returned when rev can not be read.
func (v *View) Items(k KeyRange, rev int64) (iter.Seq[Item], error) {
	rev, err := v.at(rev)
	if err != nil {
		return nil, err
	}
	return func(yield func(Item) bool) {
		sc := (&Reader{s: v.s, pin: pin{rev: rev}}).Scan(k)
		items := make([]Item, 0, viewStep)
		for {
			if items = sc.Next(items[:0], viewStep, 1<<62); len(items) == 0 {
				return
			}
			for i := range items {
				if !yield(items[i]) {
					return
				}
			}
		}
	}, nil
}

// Scan calls each with the live keys of a range and their values at a revision, in key order;
// rev ≤ 0 means the newest one. The value is valid during the call. An error of each ends it and is returned.
//
// ErrFutureRev and ErrCompacted are returned when rev can not be read, ErrDamaged when a record can not be.
func (v *View) Scan(ctx context.Context, k KeyRange, rev int64, each func(KeyValue) error) error {
	rev, err := v.at(rev)
	if err != nil {
		return err
	}
	sc := (&Reader{s: v.s, pin: pin{rev: rev}}).Scan(k)
	var items []Item
	var buf []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if items = sc.Next(items[:0], viewStep, viewBytes); len(items) == 0 {
			return nil
		}
		if buf, err = v.s.AppendValues(buf[:0], items, 1); err != nil {
			return err
		}
		if err := eachValue(buf, items, each); err != nil {
			return err
		}
	}
}

// eachValue calls each for the records that AppendValues has put into b.
func eachValue(b []byte, items []Item, each func(KeyValue) error) error {
	for i := range items {
		_, _, n := protowire.ConsumeTag(b)
		encoded, m := protowire.ConsumeBytes(b[max(n, 0):])
		if n < 0 || m < 0 {
			return damage(fmt.Errorf("the record of %q is cut off", items[i].Key))
		}
		b = b[n+m:]
		kv, err := tree.DecodeKV(encoded)
		if err != nil {
			return damage(fmt.Errorf("the record of %q: %w", items[i].Key, err))
		}
		if err := each(KeyValue{Item: items[i], Value: kv.Value}); err != nil {
			return err
		}
	}
	return nil
}

// Value reads the value of an item of this view.
func (v *View) Value(it Item) (value []byte, err error) {
	encoded, err := v.s.recordValue(it.Rev)
	if err != nil {
		return nil, err
	}
	kv, err := tree.DecodeKV(encoded)
	if err != nil {
		return nil, damage(fmt.Errorf("the record of %q: %w", it.Key, err))
	}
	return kv.Value, nil
}

// HashKV returns what Store.HashKV of a server answers that has just started on these files;
// rev ≤ 0 means the newest revision.
//
// ErrFutureRev and ErrCompacted are returned when rev can not be read.
func (v *View) HashKV(ctx context.Context, rev int64) (HashResult, error) {
	at, err := v.at(rev)
	if err != nil {
		return HashResult{}, err
	}
	r := HashResult{Revision: v.Revision(), HashRevision: at, CompactRevision: v.CompactRevision()}
	// A compaction that a crash has cut short goes on at the start, and keeps the hash from before it.
	kept := false
	if rev == v.CompactRevision() && v.s.compactionLeft(v.meta.FinishedCompact) {
		r.CompactRevision, kept = v.meta.FinishedCompact, v.s.changedAt(rev)
	}
	r.Hash, err = v.s.hashUpTo(ctx, at, r.CompactRevision, kept)
	return r, err
}

// liveHash is a hash of what a read at a revision sees, whatever was compacted below it.
func (s *Store) liveHash(ctx context.Context, rev int64) (uint32, error) {
	return s.hashUpTo(ctx, rev, rev, false)
}
