package main

import (
	"slices"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// deleteName is one delete of a key.
type deleteName struct {
	key      string
	revision int64
}

// recordedDelete is a delete in the log.
type recordedDelete struct {
	revision int64
	deleted  int64 // the revision of the value that it has deleted
}

// openDelete is a request without an answer that can do nothing but delete one key.
type openDelete struct {
	op opName
	// expected is the revision that the key must have; 0 if it may have any.
	expected int64
}

// settleDeletes gives each delete in the log that nobody else has done to the first
// request that can have done it. The others had no effect.
func (s *settler) settleDeletes() {
	byKey := map[string][]openDelete{}
	for _, op := range s.open {
		if key, d, ok := onlyDelete(op); ok {
			byKey[key] = append(byKey[key], d)
		}
	}
	for key, open := range byKey {
		if mixed(open) {
			continue
		}
		for _, d := range s.log.deletes[key] {
			if s.answered.deletes[deleteName{key, d.revision}] {
				continue
			}
			i := slices.IndexFunc(open, func(o openDelete) bool { return o.expected == 0 || o.expected == d.deleted })
			if i >= 0 {
				s.outcomes[open[i].op] = outcome{true, d.revision}
				open = slices.Delete(open, i, i+1)
			}
		}
		for _, o := range open {
			s.outcomes[o.op] = outcome{}
		}
	}
}

// mixed tells whether requests with and without a condition are among them. Which of
// those was first says nothing then.
func mixed(open []openDelete) bool {
	first := open[0].expected == 0
	return slices.ContainsFunc(open, func(o openDelete) bool { return (o.expected == 0) != first })
}

// onlyDelete returns what an operation deletes, if it can do nothing else.
func onlyDelete(op openOp) (key string, d openDelete, ok bool) {
	if op.request.Type != model.Txn {
		return "", d, false
	}
	txn := op.request.Txn
	for _, o := range txn.AllOperations() {
		switch {
		case o.Type == model.PutOperation, o.Type == model.DeleteOperation && key != "":
			return "", d, false
		case o.Type == model.DeleteOperation:
			key = o.Delete.Key
		}
	}
	d.op = op.name
	switch len(txn.Conditions) {
	case 0:
	case 1:
		c := txn.Conditions[0]
		if c.Key != key || c.ExpectedVersion != 0 || c.ExpectedRevision == 0 {
			return "", d, false
		}
		d.expected = c.ExpectedRevision
	default:
		return "", d, false
	}
	return key, d, key != ""
}
