package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/store/tree"
)

// OtherKeys stands in PrefixTotals for the keys that belong to no prefix that is told apart.
const OtherKeys = "other"

// PrefixTotals is what there is of one prefix, such as /registry/pods/. The JSON names are stable.
type PrefixTotals struct {
	// Prefix ends in a slash, or is OtherKeys. Bytes that can not be printed are escaped as in Go,
	// and so is the backslash then.
	Prefix string `json:"prefix"`
	// Rest tells that longer prefixes have totals of their own, and these are for the other keys.
	Rest bool `json:"rest,omitempty"`

	Keys  int64 `json:"keys"`  // live keys
	Bytes int64 `json:"bytes"` // of the newest records of these

	// Records are all that are not compacted: old versions and deletions too.
	Records     int64 `json:"records"`
	RecordBytes int64 `json:"recordBytes"`

	Writes uint64 `json:"writes"` // keys put and deleted since the store was opened
}

// Prefixes returns the totals of all prefixes of which there is anything, in the order of the
// prefixes. Together they are the whole store, but for what is written meanwhile. It costs O(log n)
// of the number of keys for each of the prefixes, of which there are at most 1,000.
func (s *Store) Prefixes() []PrefixTotals {
	all, _ := s.mem.prefixTotals()
	all = slices.DeleteFunc(all, func(t PrefixTotals) bool { return t.Keys == 0 && t.Records == 0 && t.Writes == 0 })
	slices.SortFunc(all, func(x, y PrefixTotals) int { return cmp.Compare(x.Prefix, y.Prefix) })
	return all
}

// prefixStep is the number of prefixes whose totals are made under one lock.
const prefixStep = 64

// prefixTotals returns the totals and, at the same positions, the counts that they are for.
func (m *memory) prefixTotals() (all []PrefixTotals, counts []*prefixCount) {
	for more := true; more; {
		all, counts, more = m.appendPrefixTotals(all)
	}
	for i := range all {
		// What was written between two locks may be missing here and there.
		all[i].Keys, all[i].Bytes = max(all[i].Keys, 0), max(all[i].Bytes, 0)
	}
	return all, counts
}

// appendPrefixTotals goes on with the next prefixes. It takes what is in a prefix off the next shorter one.
func (m *memory) appendPrefixTotals(all []PrefixTotals) ([]PrefixTotals, []*prefixCount, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	counts := m.prefixes.list
	to := min(len(all)+prefixStep, len(counts))
	for i := len(all); i < to; i++ {
		c := counts[i]
		live := m.index.sumOf(c.span())
		all = append(all, PrefixTotals{
			Prefix: c.label, Rest: c.below > 0, Keys: live.live, Bytes: live.bytes,
			Records: c.records, RecordBytes: c.bytes, Writes: c.writes,
		})
		if i > 0 {
			all[c.above].Keys -= live.live
			all[c.above].Bytes -= live.bytes
		}
	}
	return all, counts[:to:to], to < len(counts)
}

// largestPrefixes names the prefixes that fill the store most, for a line of the log.
func (s *Store) largestPrefixes() string {
	const few = 3
	all := s.Prefixes()
	slices.SortFunc(all, func(x, y PrefixTotals) int { return cmp.Compare(y.RecordBytes, x.RecordBytes) })
	var b strings.Builder
	for i, t := range all[:min(few, len(all))] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %d keys, %d bytes in %d records", t.Prefix, t.Keys, t.RecordBytes, t.Records)
	}
	return b.String()
}

// ReadPrefixes returns the totals of a store whose directory no server has open. It changes
// nothing; Writes are 0.
//
// ErrInUse is returned while a server has the directory, and ErrDamaged for what Check finds damage in.
func ReadPrefixes(ctx context.Context, dir string) (all []PrefixTotals, err error) {
	var r CheckReport
	err = r.openDir(ctx, dir, false, func(t *tree.Tree, meta tree.Meta) error {
		s, err := r.load(ctx, dir, t, meta)
		if err == nil && r.ContentRead {
			all = s.Prefixes()
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(r.Findings) > 0:
		return nil, damage(errors.New(r.Findings[0]))
	}
	return all, nil
}
