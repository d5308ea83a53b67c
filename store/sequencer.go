package store

import (
	"context"
	"sync/atomic"

	"github.com/tarn-kv/tarn/store/tree"
)

// Txn evaluates and applies a transaction. It returns once everything that the
// result shows is durable. The result must be closed.
//
// ErrCompacted, ErrFutureRev, ErrLeaseNotFound, ErrKeyNotFound and ErrNoSpace
// are returned when an operation of the branch taken can not be done, and an error of
// auth.State.Allow when the context's caller may not do all of both branches: nothing
// of the transaction is applied then.
func (s *Store) Txn(ctx context.Context, req *TxnRequest) (*TxnResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.readOnly() {
		return s.readTxn(ctx, req)
	}
	var res *TxnResult
	err := s.submit(func(b *batch) error {
		if err := s.admit(b, req); err != nil {
			return err
		}
		if err := s.permitTxn(ctx, s.auth.head, req); err != nil {
			return err
		}
		s.mem.mu.Lock()
		defer s.mem.mu.Unlock()
		x := &txn{s: s, b: b, now: s.head.revision}
		plan := x.decide(req)
		if err := x.check(plan); err != nil {
			return err
		}
		res = x.run(plan)
		x.finish(res)
		return nil
	})
	if err != nil {
		if res != nil {
			res.Close()
		}
		return nil, err
	}
	atomic.AddUint64(&s.count.Txns, 1)
	return res, nil
}

// txn is one transaction being evaluated at the head. Store.mu and mem.mu are
// held.
type txn struct {
	s   *Store
	b   *batch
	now int64 // revision before the transaction
	// writes is the number of changes so far; the first one assigns the
	// revision now+1 to the transaction.
	writes int32
	// pin is the lowest revision at which a result refers to records, whose
	// values are read later; 0 if none does.
	pin int64
}

// plan is a transaction with its branches chosen.
type plan struct {
	succeeded bool
	ops       []Op
	nested    []*plan // one per nested transaction among ops, in order
}

// decide evaluates all compares of the tree against the state before the
// transaction.
func (x *txn) decide(req *TxnRequest) *plan {
	p := &plan{succeeded: true}
	for i := range req.Compare {
		if !x.s.holds(&req.Compare[i], x.now) {
			p.succeeded = false
			break
		}
	}
	p.ops = req.Failure
	if p.succeeded {
		p.ops = req.Success
	}
	for i := range p.ops {
		if t := p.ops[i].Txn; t != nil {
			p.nested = append(p.nested, x.decide(t))
		}
	}
	return p
}

// check finds what can not be done, against the state before the transaction.
func (x *txn) check(p *plan) error {
	nested := p.nested
	for i := range p.ops {
		op := &p.ops[i]
		var err error
		switch {
		case op.Range != nil:
			err = checkRevision(op.Range.Revision, x.now, x.s.head.compacted)
		case op.Put != nil:
			err = x.checkPut(op.Put)
		case op.Txn != nil:
			err = x.check(nested[0])
			nested = nested[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *txn) checkPut(p *PutRequest) error {
	if p.Lease != 0 && !p.IgnoreLease && !x.s.leases.exists(p.Lease) {
		return ErrLeaseNotFound
	}
	if p.IgnoreValue || p.IgnoreLease {
		if e := x.s.mem.index.get(string(p.Key)); e == nil || !e.live() {
			return ErrKeyNotFound
		}
	}
	return nil
}

// run executes a plan in order.
func (x *txn) run(p *plan) *TxnResult {
	res := &TxnResult{Succeeded: p.succeeded, Ops: p.ops}
	if len(p.ops) > 0 {
		res.Results = make([]OpResult, len(p.ops))
	}
	nested := p.nested
	for i := range p.ops {
		op, out := &p.ops[i], &res.Results[i]
		switch {
		case op.Range != nil:
			x.rangeOp(op.Range, out)
		case op.Put != nil:
			x.put(op.Put, out)
		case op.Delete != nil:
			x.deleteRange(op.Delete, out)
		case op.Txn != nil:
			out.Txn = x.run(nested[0])
			nested = nested[1:]
		}
		out.Revision = x.current()
	}
	res.Revision = x.current()
	return res
}

// current is the revision that the transaction's operations see and show.
func (x *txn) current() int64 {
	if x.writes > 0 {
		return x.now + 1
	}
	return x.now
}

// finish moves the head to the transaction's revision.
func (x *txn) finish(res *TxnResult) {
	x.s.head.revision = x.current()
	if x.pin != 0 {
		x.s.pins.add(x.pin)
		res.pin = pin{&x.s.pins, x.pin}
	}
}

// keep makes sure that what is visible at rev stays until the result is closed.
func (x *txn) keep(rev int64) {
	if x.pin == 0 || rev < x.pin {
		x.pin = rev
	}
}

func (x *txn) rangeOp(req *RangeRequest, out *OpResult) {
	r := *req
	if r.Revision <= 0 {
		r.Revision = x.current()
	}
	sel := x.s.selectRange(&r)
	out.Items, out.Count, out.More = sel.items, sel.count, sel.more
	x.keep(min(r.Revision, x.now)) // also what the transaction itself replaces later
	atomic.AddUint64(&x.s.count.Ranges, 1)
}

// revision assigns the revision of the transaction's next change.
func (x *txn) revision() Revision {
	rev := Revision{Main: x.now + 1, Sub: int64(x.writes)}
	x.writes++
	return rev
}

func (x *txn) put(p *PutRequest, out *OpResult) {
	s := x.s
	key := string(p.Key)
	var before record
	if e := s.mem.index.get(key); e != nil && e.live() {
		before = e.last
		if p.PrevKV {
			out.Items = []Item{e.item(&before)}
			x.keep(x.now)
		}
	}
	value, lease := p.Value, p.Lease
	if p.IgnoreValue && before.version > 0 {
		value = s.valueOf(&before)
	}
	if p.IgnoreLease {
		lease = before.lease
	}
	rev := x.revision()
	r := record{main: rev.Main, sub: int32(rev.Sub), create: before.create, version: before.version + 1, lease: lease}
	if r.version == 1 {
		r.create = rev.Main
	}
	kv := x.b.put(rev, &r, p.Key, value)
	r.size = int32(len(kv))
	s.mem.append(key, r, kv)
	s.leases.move(key, before.lease, lease)
	atomic.AddUint64(&s.count.Puts, 1)
	atomic.AddUint64(&s.count.PutBytes, uint64(len(kv)))
}

// deleteRange works through the range twice: to learn what there is, so that memory is
// taken once, and to delete. Nobody else can write meanwhile.
func (x *txn) deleteRange(d *DeleteRequest, out *OpResult) {
	index, span := &x.s.mem.index, d.span()
	room := 0
	index.ascend(span, func(e *entry) bool {
		if e.live() {
			out.Count++
			room += recordHead + tree.KVSize(len(e.key), 0, 0, 0, 0, 0)
		}
		return true
	})
	if out.Count == 0 {
		return
	}
	if d.PrevKV {
		out.Items = make([]Item, 0, out.Count)
		x.keep(x.now)
	}
	x.b.room(room)
	var key []byte
	index.updateRange(span, func(e *entry) {
		if !e.live() {
			return
		}
		if d.PrevKV {
			out.Items = append(out.Items, e.item(&e.last))
		}
		key = append(key[:0], e.key...)
		x.delete(e, key)
	})
}

// delete appends a tombstone to an entry that the caller updates; key is the entry's.
func (x *txn) delete(e *entry, key []byte) {
	s, rev, lease := x.s, x.revision(), e.last.lease
	kv := x.b.tombstone(rev, key)
	s.mem.appendTo(e, record{main: rev.Main, sub: int32(rev.Sub), size: int32(len(kv))}, kv)
	s.leases.move(e.key, lease, 0)
	atomic.AddUint64(&s.count.Deletes, 1)
}
