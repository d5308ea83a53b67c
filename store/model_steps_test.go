package store

import (
	"bytes"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

func errorsIs(err, target error) bool { return errors.Is(err, target) }

func (r *modelRunner) stepPut()    { r.runTxn(&TxnRequest{Success: []Op{{Put: r.putRequest()}}}) }
func (r *modelRunner) stepDelete() { r.runTxn(&TxnRequest{Success: []Op{{Delete: r.deleteRequest()}}}) }
func (r *modelRunner) stepTxn()    { r.runTxn(r.txnRequest(0)) }

func (r *modelRunner) runTxn(req *TxnRequest) {
	r.logf("txn %s", req.text())
	got, err := r.s.Txn(bg, req)
	want, wantErr := r.m.txn(req)
	if !r.sameErr("txn", err, wantErr) {
		return
	}
	defer got.Close()
	if r.chance(8) {
		r.stepCompact() // takes nothing from the result
	}
	r.sameTxn(got, want)
}

func (r *modelRunner) sameTxn(got *TxnResult, want *modelTxn) {
	r.equal("txn revision", got.Revision, want.rev)
	r.equal("txn succeeded", got.Succeeded, want.succeeded)
	r.equal("txn operations", len(got.Results), len(want.ops))
	r.equal("txn branch", len(got.Ops), len(want.ops))
	for i := range got.Results {
		g, w := &got.Results[i], &want.ops[i]
		r.equal("operation's revision", g.Revision, w.rev)
		if w.txn != nil {
			r.sameTxn(g.Txn, w.txn)
			continue
		}
		r.equal("operation's count", g.Count, w.count)
		r.equal("operation's more", g.More, w.more)
		r.sameItems(g.Items, w.found, w.req)
	}
}

func (r *modelRunner) stepRange() {
	q := r.rangeRequest()
	r.logf("%s", Op{Range: q}.text())
	got, err := r.s.Range(bg, q)
	if !r.sameErr("range", err, r.m.checkRevision(q.Revision)) {
		return
	}
	defer got.Close()
	want := r.m.find(q, r.m.rev)
	r.equal("range revision", got.Revision, r.m.rev)
	if q.Revision > 0 {
		r.equal("revision read", got.At, q.Revision)
	}
	r.equal("count", got.Count, want.count)
	r.equal("more", got.More, want.more)
	r.sameItems(got.Items, want, q)
}

// sameItems compares records and their values. Where the order leaves a choice
// between equal ones, any of them will do.
func (r *modelRunner) sameItems(items []Item, want found, q *RangeRequest) {
	r.equal("number of items", len(items), len(want.kvs))
	kvs, err := valuesOf(r.s, items)
	r.noErr("values", err)
	bare, err := decodeFramed(AppendKeysOnly(nil, items, 5), 5)
	r.noErr("keys only", err)
	for i, kv := range kvs {
		w := want.kvs[i]
		if q != nil && q.Target != ByKey && string(kv.Key) != string(w.Key) {
			r.equal("order", compareBy(q.Target, kv, w), 0)
			at := slices.IndexFunc(want.all, func(o *mvccpb.KeyValue) bool { return bytes.Equal(o.Key, kv.Key) })
			if at < 0 || slices.ContainsFunc(kvs[:i], func(o *mvccpb.KeyValue) bool { return bytes.Equal(o.Key, kv.Key) }) {
				r.failf("key %q does not belong there", kv.Key)
			}
			w = want.all[at]
		}
		r.sameKV("item", kv, w)
		it := items[i]
		r.equal("item's size", it.Size, len(encodeKV(w)))
		r.sameKV("item's fields", &mvccpb.KeyValue{Key: []byte(it.Key), CreateRevision: it.Create, ModRevision: it.Rev.Main, Version: it.Version, Lease: it.Lease, Value: w.Value}, w)
		bare[i].Value = w.Value
		r.sameKV("keys only", bare[i], w)
	}
}

func (r *modelRunner) sameKV(what string, got, want *mvccpb.KeyValue) {
	if !bytes.Equal(encodeKV(got), encodeKV(want)) {
		r.failf("%s: %.200s, want %.200s", what, got, want)
	}
}

func (r *modelRunner) stepCompact() {
	rev, physical := r.revision(), r.chance(2)
	if r.chance(2) {
		rev = max(r.m.compacted, 0) + r.rnd.Int64N(4)
	}
	r.logf("compact %d, physical %v", rev, physical)
	current, err := r.s.Compact(bg, rev, physical)
	r.sameErr("compact", err, r.m.compact(rev))
	r.equal("compact's revision", current, r.m.rev)
}

func (r *modelRunner) stepHash() { r.checkHash(r.revision()) }

func (r *modelRunner) checkHash(rev int64) {
	r.logf("hash at %d", rev)
	got, err := r.s.HashKV(bg, rev)
	want, stored := r.m.hashes[rev]
	switch {
	case stored && errors.Is(err, ErrCompacted) && len(r.readers) > 0:
		return // its compaction has not got to it yet
	case !stored && !r.sameErr("hash", err, r.m.checkRevision(rev)), stored && !r.sameErr("hash", err, nil):
		return
	}
	if !stored || rev <= 0 {
		want = HashResult{HashRevision: rev, CompactRevision: r.m.compacted}
		if rev <= 0 {
			want.HashRevision = r.m.rev
		}
		want.Hash = r.m.hash(want.HashRevision)
	}
	want.Revision = r.m.rev
	if len(r.readers) > 0 && got != want {
		return // records that somebody reads are still there: etcd has no such state
	}
	r.equal("hash", got, want)
}

func (r *modelRunner) stepAlarm() {
	a := Alarm{MemberID: 7, Type: AlarmType(1 + r.rnd.IntN(2))}
	on := r.chance(3)
	r.logf("alarm %+v %v", a, on)
	if on {
		r.noErr("activate", r.s.AlarmActivate(bg, a))
		r.m.alarms[a] = true
	} else {
		for _, a := range []Alarm{{7, NoSpace}, {7, Corrupt}} {
			was, err := r.s.AlarmDeactivate(bg, a)
			r.noErr("deactivate", err)
			r.equal("alarm was on", was, r.m.alarms[a])
			delete(r.m.alarms, a)
		}
	}
	r.checkAlarms()
}

func (r *modelRunner) checkAlarms() {
	got := r.s.Alarms()
	r.equal("number of alarms", len(got), len(r.m.alarms))
	for _, a := range got {
		r.equal("alarm", r.m.alarms[a], true)
	}
}

// stepReader opens a reader, or compares what an older one sees, also across compactions.
func (r *modelRunner) stepReader() {
	if len(r.readers) < 2 && r.chance(2) {
		rev := r.revision()
		r.logf("open reader at %d", rev)
		rd, err := r.s.NewReader(bg, rev)
		if r.sameErr("reader", err, r.m.checkRevision(rev)) {
			r.equal("reader's current revision", rd.Current(), r.m.rev)
			r.readers = append(r.readers, rd)
		}
		return
	}
	if len(r.readers) == 0 {
		return
	}
	i := r.rnd.IntN(len(r.readers))
	rd, k := r.readers[i], r.keyRange()
	r.logf("read %q to %q at %d", k.Key, k.End, rd.At())
	want := found{kvs: r.m.at(rd.At(), k)}
	r.equal("reader's count", rd.Count(k), int64(len(want.kvs)))
	var items []Item
	for sc, n := rd.Scan(k), 0; ; n = len(items) {
		items = sc.Next(items, 1+r.rnd.IntN(3), 1+r.rnd.IntN(100))
		if len(items) == n {
			break
		}
	}
	r.sameItems(items, want, nil)
	if r.chance(2) {
		rd.Close()
		r.readers = slices.Delete(r.readers, i, i+1)
	}
}
