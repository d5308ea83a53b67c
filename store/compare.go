package store

import (
	"bytes"
	"cmp"

	"github.com/tarn-kv/tarn/store/tree"
)

// holds reports whether a compare is true at revision rev, at or below the head.
// Every key of the range must match; an empty range is like one missing key.
// mem.mu is held.
func (s *Store) holds(c *Compare, rev int64) bool {
	if len(c.End) == 0 {
		e := s.mem.index.get(string(c.Key))
		if e == nil {
			return c.missing()
		}
		if r := e.liveAt(rev); r != nil {
			return s.matches(c, r)
		}
		return c.missing()
	}
	found, ok := false, true
	s.mem.index.ascend(c.span(), func(e *entry) bool {
		if r := e.liveAt(rev); r != nil {
			found = true
			ok = s.matches(c, r)
		}
		return ok
	})
	if !found {
		return c.missing()
	}
	return ok
}

func (c *Compare) missing() bool {
	return c.Target != CompareValue && c.Result.of(cmp.Compare(0, c.Int))
}

func (s *Store) matches(c *Compare, r *record) bool {
	var stored int64
	switch c.Target {
	case CompareVersion:
		stored = r.version
	case CompareCreate:
		stored = r.create
	case CompareMod:
		stored = r.main
	case CompareLease:
		stored = r.lease
	case CompareValue:
		return c.Result.of(bytes.Compare(s.valueOf(r), c.Value))
	}
	return c.Result.of(cmp.Compare(stored, c.Int))
}

// of reports whether an order (stored against wanted) is the result.
func (r CompareResult) of(order int) bool {
	switch r {
	case Equal:
		return order == 0
	case Greater:
		return order > 0
	case Less:
		return order < 0
	default:
		return order != 0
	}
}

// valueOf returns the value of one record; mem.mu is held. It returns nil if the
// record can not be read, which stops the store.
func (s *Store) valueOf(r *record) []byte {
	encoded, err := s.lockedValue(r.rev())
	if err == nil {
		var kv tree.KV
		if kv, err = tree.DecodeKV(encoded); err == nil {
			return kv.Value
		}
	}
	_ = s.readFailed(err)
	return nil
}
