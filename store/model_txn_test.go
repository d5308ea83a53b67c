package store

import (
	"bytes"
	"cmp"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// modelTxn is a transaction's answer, and a modelOp an operation's.
type modelTxn struct {
	rev       int64
	succeeded bool
	ops       []modelOp
}

type modelOp struct {
	rev int64
	found
	req *RangeRequest // of a range
	txn *modelTxn
}

// modelRun is a transaction under way.
type modelRun struct {
	m   *model
	sub int64
}

func (x *modelRun) now() int64 {
	if x.sub > 0 {
		return x.m.rev + 1
	}
	return x.m.rev
}

func (m *model) txn(req *TxnRequest) (*modelTxn, error) {
	readOnly := true
	for _, op := range append(append([]Op(nil), req.Success...), req.Failure...) {
		readOnly = readOnly && op.Range != nil
	}
	if m.alarm(Corrupt) && !readOnly {
		return nil, ErrCorrupt
	}
	if m.alarm(NoSpace) && putsAny(req) {
		return nil, ErrNoSpace
	}
	if err := m.check(req); err != nil {
		return nil, err
	}
	// The branches are chosen before anything changes.
	branch := make(map[*TxnRequest]bool)
	m.decide(req, branch)
	x := &modelRun{m: m}
	res := x.run(req, branch)
	m.rev = x.now()
	return res, nil
}

func putsAny(req *TxnRequest) bool {
	for _, op := range append(append([]Op(nil), req.Success...), req.Failure...) {
		if op.Put != nil || op.Txn != nil && putsAny(op.Txn) {
			return true
		}
	}
	return false
}

func (m *model) decide(req *TxnRequest, branch map[*TxnRequest]bool) {
	branch[req] = m.holdAll(req.Compare)
	for _, op := range req.branch(branch[req]) {
		if op.Txn != nil {
			m.decide(op.Txn, branch)
		}
	}
}

func (t *TxnRequest) branch(succeeded bool) []Op {
	if succeeded {
		return t.Success
	}
	return t.Failure
}

func (m *model) check(req *TxnRequest) error {
	for _, op := range req.branch(m.holdAll(req.Compare)) {
		var err error
		switch {
		case op.Range != nil:
			err = m.checkRevision(op.Range.Revision)
		case op.Txn != nil:
			err = m.check(op.Txn)
		case op.Put != nil:
			p := op.Put
			_, granted := m.leases[p.Lease]
			if p.Lease != 0 && !p.IgnoreLease && !granted {
				err = ErrLeaseNotFound
			} else if (p.IgnoreLease || p.IgnoreValue) && m.get(m.rev, p.Key) == nil {
				err = ErrKeyNotFound
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *model) holdAll(all []Compare) bool {
	for _, c := range all {
		live := m.at(m.rev, c.KeyRange)
		if len(live) == 0 && (c.Target == CompareValue || !resultIs(c.Result, cmp.Compare(0, c.Int))) {
			return false
		}
		for _, kv := range live {
			order := 0
			switch c.Target {
			case CompareVersion:
				order = cmp.Compare(kv.Version, c.Int)
			case CompareCreate:
				order = cmp.Compare(kv.CreateRevision, c.Int)
			case CompareMod:
				order = cmp.Compare(kv.ModRevision, c.Int)
			case CompareLease:
				order = cmp.Compare(kv.Lease, c.Int)
			case CompareValue:
				order = bytes.Compare(kv.Value, c.Value)
			}
			if !resultIs(c.Result, order) {
				return false
			}
		}
	}
	return true
}

func resultIs(r CompareResult, order int) bool {
	return r == Equal && order == 0 || r == Greater && order > 0 || r == Less && order < 0 || r == NotEqual && order != 0
}

func (x *modelRun) run(req *TxnRequest, branch map[*TxnRequest]bool) *modelTxn {
	res := &modelTxn{succeeded: branch[req]}
	for _, op := range req.branch(res.succeeded) {
		var out modelOp
		switch {
		case op.Range != nil:
			out.req, out.found = op.Range, x.m.find(op.Range, x.now())
		case op.Put != nil:
			out.kvs = x.put(op.Put)
		case op.Delete != nil:
			out.found = x.delete(op.Delete)
		case op.Txn != nil:
			out.txn = x.run(op.Txn, branch)
		}
		out.rev = x.now()
		res.ops = append(res.ops, out)
	}
	res.rev = x.now()
	return res
}

func (x *modelRun) add(dead bool, kv *mvccpb.KeyValue) {
	r := modelRecord{main: x.m.rev + 1, sub: x.sub, dead: dead, kv: kv}
	x.m.history, x.m.stored = append(x.m.history, r), append(x.m.stored, r)
	x.sub++
}

func (x *modelRun) put(p *PutRequest) (prev []*mvccpb.KeyValue) {
	rev := x.m.rev + 1
	kv := &mvccpb.KeyValue{Key: p.Key, Value: p.Value, Lease: p.Lease, CreateRevision: rev, ModRevision: rev, Version: 1}
	if old := x.m.get(rev, p.Key); old != nil {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
		if p.IgnoreValue {
			kv.Value = old.Value
		}
		if p.IgnoreLease {
			kv.Lease = old.Lease
		}
		if p.PrevKV {
			prev = append(prev, old)
		}
	} else if p.IgnoreLease {
		kv.Lease = 0 // an earlier operation of the transaction deleted the key
	}
	x.add(false, kv)
	return prev
}

func (x *modelRun) delete(d *DeleteRequest) (f found) {
	live := x.m.at(x.m.rev+1, d.KeyRange)
	f.count = int64(len(live))
	if d.PrevKV {
		f.kvs = live
	}
	for _, kv := range live {
		x.add(true, &mvccpb.KeyValue{Key: kv.Key})
	}
	return f
}

// revoke ends a lease; its keys go in key order.
func (m *model) revoke(id int64) error {
	if m.alarm(Corrupt) {
		return ErrCorrupt
	}
	if _, ok := m.leases[id]; !ok {
		return ErrLeaseNotFound
	}
	x := &modelRun{m: m}
	for _, k := range m.leaseKeys(id) {
		x.add(true, &mvccpb.KeyValue{Key: []byte(k)})
	}
	m.rev = x.now()
	delete(m.leases, id)
	return nil
}
