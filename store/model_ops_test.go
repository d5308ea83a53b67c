package store

import (
	"bytes"
	"fmt"
	"strings"
)

var modelKeys = []string{"a", "aa", "ab", "b", "b\x00", "ba", "c", "d"}

func (r *modelRunner) key() string { return modelKeys[r.rnd.IntN(len(modelKeys))] }

func (r *modelRunner) value() []byte {
	switch {
	case r.chance(8):
		return nil
	case r.bigValues && r.chance(3):
		return bytes.Repeat([]byte{byte('a' + r.rnd.IntN(26))}, 100_000+r.rnd.IntN(200_000))
	}
	return fmt.Append(nil, r.rnd.IntN(5))
}

func (r *modelRunner) keyRange() KeyRange {
	switch r.rnd.IntN(6) {
	case 0, 1:
		return single(r.key())
	case 2:
		return everything
	case 3:
		return between(r.key(), "\x00")
	}
	return between(r.key(), r.key()) // often empty
}

// revision is mostly current or one that can be read.
func (r *modelRunner) revision() int64 {
	switch low := max(r.m.compacted, 1); r.rnd.IntN(8) {
	case 0, 1, 2:
		return 0
	case 3:
		return low - int64(r.rnd.IntN(4))
	case 4:
		return r.m.rev + int64(r.rnd.IntN(3)) - 1
	default:
		return low + r.rnd.Int64N(max(r.m.rev-low, 0)+1)
	}
}

func (r *modelRunner) lease() int64 {
	if r.chance(2) {
		return 0
	}
	return 1 + r.rnd.Int64N(4)
}

func (r *modelRunner) putRequest() *PutRequest {
	p := &PutRequest{Key: []byte(r.key()), Value: r.value(), Lease: r.lease(), PrevKV: r.chance(2)}
	if r.chance(6) {
		p.IgnoreValue, p.Value = true, nil
	}
	if r.chance(6) {
		p.IgnoreLease, p.Lease = true, 0
	}
	return p
}

func (r *modelRunner) deleteRequest() *DeleteRequest {
	d := &DeleteRequest{KeyRange: r.keyRange(), PrevKV: r.chance(2)}
	if r.chance(2) {
		d.KeyRange = single(r.key())
	}
	return d
}

func (r *modelRunner) rangeRequest() *RangeRequest {
	q := &RangeRequest{KeyRange: r.keyRange(), Revision: r.revision()}
	if r.chance(2) {
		q.Limit = r.rnd.Int64N(5) - 1
	}
	if r.chance(3) {
		q.Order, q.Target = Order(r.rnd.IntN(3)), Target(r.rnd.IntN(5))
	}
	q.CountOnly, q.KeysOnly = r.chance(8), r.chance(6)
	if r.chance(4) {
		for _, bound := range []*int64{&q.MinMod, &q.MaxMod, &q.MinCreate, &q.MaxCreate} {
			if r.chance(3) {
				*bound = r.rnd.Int64N(r.m.rev+2) - 1
				if kv := r.m.get(r.m.rev, []byte(r.key())); kv != nil && r.chance(2) {
					*bound = kv.ModRevision
				}
			}
		}
	}
	return q
}

func (r *modelRunner) compare() Compare {
	c := Compare{KeyRange: r.keyRange(), Target: CompareTarget(r.rnd.IntN(5)), Result: CompareResult(r.rnd.IntN(4))}
	if r.chance(2) {
		c.KeyRange = single(r.key())
	}
	switch c.Target {
	case CompareValue:
		c.Value = r.value()
	case CompareCreate, CompareMod:
		c.Int = r.rnd.Int64N(r.m.rev + 1)
		if kv := r.m.get(r.m.rev, c.Key); kv != nil {
			c.Int = kv.ModRevision
		}
	default:
		c.Int = r.rnd.Int64N(4)
	}
	return c
}

func (r *modelRunner) txnRequest(depth int) *TxnRequest {
	if depth == 0 {
		r.putKeys = make(map[string]bool)
	}
	t := &TxnRequest{}
	for range r.rnd.IntN(3) {
		t.Compare = append(t.Compare, r.compare())
	}
	readOnly := r.chance(5)
	for _, ops := range []*[]Op{&t.Success, &t.Failure} {
		for range r.rnd.IntN(4) {
			*ops = append(*ops, r.op(depth, readOnly))
		}
	}
	return t
}

func (r *modelRunner) op(depth int, readOnly bool) Op {
	switch n := r.rnd.IntN(9); {
	case readOnly || n < 3:
		return Op{Range: r.rangeRequest()}
	case n < 6:
		// Callers see to it that no key is put twice.
		if p := r.putRequest(); !r.putKeys[string(p.Key)] {
			r.putKeys[string(p.Key)] = true
			return Op{Put: p}
		}
		return Op{Range: r.rangeRequest()}
	case n < 8 || depth == 2:
		return Op{Delete: r.deleteRequest()}
	}
	return Op{Txn: r.txnRequest(depth + 1)}
}

// text shows an operation in a failure's log.
func (o Op) text() string {
	switch {
	case o.Put != nil:
		p := *o.Put
		return fmt.Sprintf("put %q=%d bytes %.8q lease %d prev %v keep value %v lease %v", p.Key, len(p.Value), p.Value, p.Lease, p.PrevKV, p.IgnoreValue, p.IgnoreLease)
	case o.Delete != nil:
		return fmt.Sprintf("delete %q to %q", o.Delete.Key, o.Delete.End)
	case o.Range != nil:
		return fmt.Sprintf("range %q to %q %+v", o.Range.Key, o.Range.End, *o.Range)
	}
	return "(" + o.Txn.text() + ")"
}

func (t *TxnRequest) text() string {
	var b strings.Builder
	for _, c := range t.Compare {
		fmt.Fprintf(&b, "if %q to %q target %d result %d %d %.8q ", c.Key, c.End, c.Target, c.Result, c.Int, c.Value)
	}
	for i, ops := range [][]Op{t.Success, t.Failure} {
		b.WriteString([]string{"then ", "else "}[i])
		for _, o := range ops {
			b.WriteString(o.text() + "; ")
		}
	}
	return b.String()
}
