package main

import (
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/store/wal"
	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// persisted is what a log says: the changes in order, as requests to the model.
type persisted struct {
	requests  []model.EtcdRequest
	revision  int64                       // the newest
	puts      map[putKey][]int64          // the revisions of each put
	deletes   map[string][]recordedDelete // of each key, by transactions
	leases    map[int64]bool              // all that were granted
	revoked   map[int64]int64             // the revision after the end of each lease that was revoked
	compacted map[int64]bool              // revisions of compactions
	attached  map[string]int64            // the lease of each key that has one, at the end
	modified  map[string]int64            // the revision of each key at the end
	pending   []recordedChange            // changes of the revision that is being read
}

func newPersisted() *persisted {
	return &persisted{
		revision: 1,
		puts:     map[putKey][]int64{}, deletes: map[string][]recordedDelete{},
		leases: map[int64]bool{}, revoked: map[int64]int64{}, compacted: map[int64]bool{},
		attached: map[string]int64{}, modified: map[string]int64{},
	}
}

// readLog reads the segments in dir, which must be a whole log. It takes nothing
// from the server or its watches.
func readLog(dir string) (*persisted, error) {
	p := newPersisted()
	report, err := wal.Check(wal.Options{Dir: dir}, func(seq uint64, payload []byte) error {
		if err := p.addFrame(payload); err != nil {
			return fmt.Errorf("frame %d of the log: %w", seq, err)
		}
		return nil
	})
	if err == nil {
		err = errors.Join(report.Problems...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return p, nil
}

// addFrame takes over one frame. A revision is never in two frames.
func (p *persisted) addFrame(payload []byte) error {
	records, err := decodeFrame(payload)
	if err != nil {
		return err
	}
	for _, r := range records {
		switch {
		case r.kind == recordPut || r.kind == recordDelete:
			err = p.addChange(r.change)
		case r.kind == recordRevoke:
			p.addRevoke(r.number)
		case r.kind == recordGrant:
			p.endRevision()
			p.leases[r.number] = true
			p.add(model.EtcdRequest{Type: model.LeaseGrant, LeaseGrant: &model.LeaseGrantRequest{LeaseID: r.number}})
		case r.kind == recordCompact:
			p.endRevision()
			p.compacted[r.number] = true
			p.add(model.EtcdRequest{Type: model.Compact, Compact: &model.CompactRequest{Revision: r.number}})
		}
		if err != nil {
			return err
		}
	}
	p.endRevision()
	return nil
}

func (p *persisted) add(r model.EtcdRequest) { p.requests = append(p.requests, r) }

// addChange takes over one change of a key. Those of one revision are together.
func (p *persisted) addChange(c recordedChange) error {
	switch c.revision {
	case p.revision + 1:
		p.endRevision()
		p.revision++
	case p.revision:
		if len(p.pending) == 0 {
			return fmt.Errorf("revision %d is used again", c.revision)
		}
	default:
		return fmt.Errorf("revision %d follows revision %d", c.revision, p.revision)
	}
	p.pending = append(p.pending, c)
	return nil
}

// endRevision turns the changes of a revision into a transaction.
func (p *persisted) endRevision() {
	if len(p.pending) == 0 {
		return
	}
	txn := &model.TxnRequest{}
	for _, c := range p.pending {
		op := model.EtcdOperation{Type: model.DeleteOperation, Delete: model.DeleteOptions{Key: c.key}}
		delete(p.attached, c.key)
		if c.tombstone {
			p.deletes[c.key] = append(p.deletes[c.key], recordedDelete{c.revision, p.modified[c.key]})
		} else {
			value := model.ToValueOrHash(c.value)
			op = model.EtcdOperation{Type: model.PutOperation, Put: model.PutOptions{Key: c.key, Value: value, LeaseID: c.lease}}
			k := putKey{c.key, value}
			p.puts[k] = append(p.puts[k], c.revision)
			p.modified[c.key] = c.revision
			if c.lease != 0 {
				p.attached[c.key] = c.lease
			}
		}
		txn.OperationsOnSuccess = append(txn.OperationsOnSuccess, op)
	}
	p.pending = nil
	p.add(model.EtcdRequest{Type: model.Txn, Txn: txn})
}

// addRevoke takes over the end of a lease. The changes before it are its doing
// if they delete exactly the keys of the lease. Else they are a transaction's.
func (p *persisted) addRevoke(id int64) {
	if p.deletesKeysOf(id) {
		for _, c := range p.pending {
			delete(p.attached, c.key)
		}
		p.pending = nil
	} else {
		p.endRevision()
	}
	p.revoked[id] = p.revision
	p.add(model.EtcdRequest{Type: model.LeaseRevoke, LeaseRevoke: &model.LeaseRevokeRequest{LeaseID: id}})
}

func (p *persisted) deletesKeysOf(id int64) bool {
	keys := 0
	for _, lease := range p.attached {
		if lease == id {
			keys++
		}
	}
	for _, c := range p.pending {
		if !c.tombstone || p.attached[c.key] != id {
			return false
		}
	}
	return len(p.pending) == keys
}
