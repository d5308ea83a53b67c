package main

import (
	"reflect"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// putKey tells puts apart: almost all values are written once. Only compactions, as
// Kubernetes has them, write the same again until it succeeds.
type putKey struct {
	key   string
	value model.ValueOrHash
}

func keyOfPut(o model.EtcdOperation) putKey { return putKey{o.Put.Key, o.Put.Value} }

// putName is one put.
type putName struct {
	put      putKey
	revision int64
}

// settlePuts is for transactions with puts. It is called in the order of the calls.
func (s *settler) settlePuts(op openOp, mixed map[putKey]bool) {
	ops := op.request.Txn.AllOperations()
	puts := false
	for _, o := range ops {
		if o.Type != model.PutOperation {
			continue
		}
		puts = true
		at, ok := s.unexplainedPut(keyOfPut(o))
		if ok && mixed[keyOfPut(o)] {
			return
		}
		if ok {
			s.outcomes[op.name] = outcome{true, at}
			s.answered.addPersisted(ops, at)
			return
		}
	}
	if puts {
		s.outcomes[op.name] = outcome{}
	}
}

// unexplainedPut returns the first revision of a put in the log that no known request
// has done.
func (s *settler) unexplainedPut(k putKey) (revision int64, ok bool) {
	for _, at := range s.log.puts[k] {
		if !s.answered.puts[putName{k, at}] {
			return at, true
		}
	}
	return 0, false
}

// mixedPuts finds the puts that open requests with different conditions can have done.
// Which of those was first says nothing.
func (s *settler) mixedPuts() map[putKey]bool {
	first, mixed := map[putKey]*model.TxnRequest{}, map[putKey]bool{}
	for _, op := range s.open {
		if op.request.Type != model.Txn {
			continue
		}
		for _, o := range op.request.Txn.AllOperations() {
			if o.Type != model.PutOperation {
				continue
			}
			k := keyOfPut(o)
			if first[k] == nil {
				first[k] = op.request.Txn
			} else if !reflect.DeepEqual(first[k], op.request.Txn) {
				mixed[k] = true
			}
		}
	}
	return mixed
}
