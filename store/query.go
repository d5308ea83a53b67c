package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/tarn-kv/tarn/store/tree"
)

// Range evaluates a request at its revision. The result has no values yet: they
// are fetched with AppendValues; it must be closed.
//
// ErrFutureRev and ErrCompacted are returned when the revision can not be read, and an error of
// auth.State.Allow, before those, when the context's caller may not read the range.
func (s *Store) Range(ctx context.Context, req *RangeRequest) (*RangeResult, error) {
	r, err := s.NewReader(ctx, req.Revision)
	if denied := s.PermitRead(ctx, req.KeyRange); denied != nil {
		if err == nil {
			r.Close()
		}
		return nil, denied
	}
	if err != nil {
		return nil, err
	}
	res := &RangeResult{Revision: r.current, At: r.rev, pin: r.pin}
	sel := selection{req: req, s: s}
	if req.CountOnly {
		res.Count = r.Count(req.KeyRange)
		return res, nil
	}
	sc := r.Scan(req.KeyRange)
	step := int64(scanStep)
	if req.inKeyOrder() && req.Limit > 0 {
		step = min(step, req.Limit) + 1
	}
	var items []Item
	for !sel.more { // more is known when the limit is passed; the rest needs no look
		if err := ctx.Err(); err != nil {
			res.Close()
			return nil, err
		}
		items = sc.Next(items[:0], int(step), 1<<62)
		if len(items) == 0 {
			break
		}
		for i := range items {
			sel.add(items[i])
		}
	}
	if sel.more {
		sel.count = r.Count(req.KeyRange)
	}
	if err := sel.finish(); err != nil {
		res.Close()
		return nil, s.readFailed(err)
	}
	res.Items, res.Count, res.More = sel.items, sel.count, sel.more
	return res, nil
}

// readTxn evaluates a transaction that has only range operations, at the
// published revision and without the writer.
func (s *Store) readTxn(ctx context.Context, req *TxnRequest) (*TxnResult, error) {
	p, current, err := s.pinAt(0)
	if err != nil {
		return nil, err
	}
	if err := s.permitTxn(ctx, s.Auth(), req); err != nil {
		p.Close()
		return nil, err
	}
	res := &TxnResult{Revision: current, Succeeded: true, Ops: req.Success, pin: p}
	s.mem.mu.RLock()
	defer s.mem.mu.RUnlock()
	for i := range req.Compare {
		if !s.holds(&req.Compare[i], current) {
			res.Succeeded, res.Ops = false, req.Failure
			break
		}
	}
	compacted := s.compacted.Load()
	for i := range res.Ops {
		if err := checkRevision(res.Ops[i].Range.Revision, current, compacted); err != nil {
			res.Close()
			return nil, err
		}
	}
	res.Results = make([]OpResult, len(res.Ops))
	for i := range res.Ops {
		q := *res.Ops[i].Range
		if q.Revision <= 0 {
			q.Revision = current
		}
		if q.Revision < res.rev {
			res.pin.Close()
			s.pins.add(q.Revision)
			res.pin = pin{&s.pins, q.Revision}
		}
		sel := s.selectRange(&q)
		res.Results[i] = OpResult{Revision: current, Items: sel.items, Count: sel.count, More: sel.more}
		atomic.AddUint64(&s.count.Ranges, 1)
	}
	return res, nil
}

// readOnly reports whether neither branch can write or nests.
func (t *TxnRequest) readOnly() bool {
	for _, ops := range [2][]Op{t.Success, t.Failure} {
		for i := range ops {
			if ops[i].Range == nil {
				return false
			}
		}
	}
	return true
}

// selectRange evaluates a request at its (positive) revision under mem.mu.
func (s *Store) selectRange(req *RangeRequest) *selection {
	sel := &selection{req: req, s: s, locked: true}
	s.mem.index.ascend(req.span(), func(e *entry) bool {
		if r := e.liveAt(req.Revision); r != nil {
			sel.add(e.item(r))
		}
		return true
	})
	if err := sel.finish(); err != nil {
		_ = s.readFailed(err)
	}
	return sel
}

// selection applies a request's bounds, order and limit to the live keys of its range.
type selection struct {
	s      *Store
	req    *RangeRequest
	locked bool // the caller holds mem.mu
	items  []Item
	count  int64
	more   bool
}

func (sel *selection) add(it Item) {
	q := sel.req
	sel.count++
	if q.CountOnly || !q.within(&it) {
		return
	}
	// In key order no more than the limit is needed, and one to know that there is more.
	if q.inKeyOrder() && q.Limit > 0 && int64(len(sel.items)) >= q.Limit {
		sel.more = true
		return
	}
	sel.items = append(sel.items, it)
}

func (q *RangeRequest) within(it *Item) bool {
	return (q.MinMod == 0 || it.Rev.Main >= q.MinMod) && (q.MaxMod == 0 || it.Rev.Main <= q.MaxMod) &&
		(q.MinCreate == 0 || it.Create >= q.MinCreate) && (q.MaxCreate == 0 || it.Create <= q.MaxCreate)
}

func (q *RangeRequest) inKeyOrder() bool { return q.Target == ByKey && q.Order != OrderDescend }

func (sel *selection) finish() error {
	q := sel.req
	if q.inKeyOrder() || len(sel.items) == 0 {
		return nil
	}
	if err := sel.sort(); err != nil {
		return err
	}
	if q.Limit > 0 && int64(len(sel.items)) > q.Limit {
		sel.items, sel.more = sel.items[:q.Limit], true
	}
	return nil
}

func (sel *selection) sort() error {
	var values map[Revision][]byte
	if sel.req.Target == ByValue {
		values = make(map[Revision][]byte, len(sel.items))
		for i := range sel.items {
			encoded, err := sel.value(sel.items[i].Rev)
			if err != nil {
				return err
			}
			values[sel.items[i].Rev] = encoded
		}
	}
	order := func(a, b Item) int {
		switch sel.req.Target {
		case ByVersion:
			return cmp.Compare(a.Version, b.Version)
		case ByCreate:
			return cmp.Compare(a.Create, b.Create)
		case ByMod:
			return cmp.Compare(a.Rev.Main, b.Rev.Main)
		case ByValue:
			return bytes.Compare(values[a.Rev], values[b.Rev])
		default:
			return cmp.Compare(a.Key, b.Key)
		}
	}
	if sel.req.Order == OrderDescend {
		ascend := order
		order = func(a, b Item) int { return ascend(b, a) }
	}
	slices.SortFunc(sel.items, order)
	return nil
}

// value returns the value (not the record) at a revision.
func (sel *selection) value(rev Revision) ([]byte, error) {
	read := sel.s.recordValue
	if sel.locked {
		read = sel.s.lockedValue
	}
	encoded, err := read(rev)
	if err != nil {
		return nil, err
	}
	kv, err := tree.DecodeKV(encoded)
	return kv.Value, err
}
