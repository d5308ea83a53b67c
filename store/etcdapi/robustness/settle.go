package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

// settle says of requests without an answer what became of them, where the log tells:
// that they had no effect, or at which revision they had it. Each that stays open doubles
// what the check has to try. etcd's validation does the same, but only for what no
// other request resembles.
//
// Where several equal requests can have had one effect, it is given to the one that
// was sent first: if any order of them is possible, that one is.
func settle(clients []report.ClientReport, p *persisted) []report.ClientReport {
	s := newSettler(clients, p)
	settled := make([]report.ClientReport, len(clients))
	for i, c := range clients {
		settled[i] = c
		settled[i].KeyValue = make([]porcupine.Operation, 0, len(c.KeyValue))
		for j, op := range c.KeyValue {
			if outcome, ok := s.outcomes[opName{i, j}]; !ok {
				settled[i].KeyValue = append(settled[i].KeyValue, op)
			} else if outcome.happened {
				op.Output = model.MaybeEtcdResponse{Persisted: true, PersistedRevision: outcome.revision}
				op.Return = math.MaxInt64 // when it was over is not known
				settled[i].KeyValue = append(settled[i].KeyValue, op)
			}
		}
	}
	return settled
}

// opName is the position of an operation: client and number.
type opName struct{ client, number int }

// outcome is what became of a request without an answer.
type outcome struct {
	happened bool
	revision int64
}

// openOp is a request without an answer.
type openOp struct {
	name    opName
	call    int64
	request model.EtcdRequest
}

// settler finds the outcomes. What it does not find stays open.
type settler struct {
	log      *persisted
	open     []openOp // in the order of the calls
	answered effects  // what answered requests did
	outcomes map[opName]outcome
}

// effects are what requests are known to have done.
type effects struct {
	puts    map[putName]bool
	deletes map[deleteName]bool
	revoked map[int64]bool
}

func newSettler(clients []report.ClientReport, p *persisted) *settler {
	s := &settler{log: p, outcomes: map[opName]outcome{},
		answered: effects{puts: map[putName]bool{}, deletes: map[deleteName]bool{}, revoked: map[int64]bool{}}}
	for i, c := range clients {
		for j, op := range c.KeyValue {
			request, response := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
			if response.Error != "" {
				s.open = append(s.open, openOp{opName{i, j}, op.Call, request})
			} else {
				s.answered.add(request, response.EtcdResponse)
			}
		}
	}
	slices.SortFunc(s.open, func(a, b openOp) int { return cmp.Compare(a.call, b.call) })
	mixed := s.mixedPuts()
	for _, op := range s.open {
		if op.request.Type == model.Txn {
			s.settlePuts(op, mixed)
		} else {
			s.settle(op)
		}
	}
	s.settleDeletes()
	return s
}

func (e *effects) add(request model.EtcdRequest, response model.EtcdResponse) {
	switch request.Type {
	case model.LeaseRevoke:
		e.revoked[request.LeaseRevoke.LeaseID] = true
	case model.Txn:
		ops := chosenBranch(request, response)
		for i, result := range response.Txn.Results {
			switch o := ops[i]; {
			case o.Type == model.PutOperation:
				e.puts[putName{keyOfPut(o), response.Revision}] = true
			case result.Deleted > 0:
				e.deletes[deleteName{o.Delete.Key, response.Revision}] = true
			}
		}
	}
}

// addPersisted notes what a transaction did of which the log tells the revision: puts
// and deletes of these keys in that revision are its doing.
func (e *effects) addPersisted(ops []model.EtcdOperation, revision int64) {
	for _, o := range ops {
		switch o.Type {
		case model.PutOperation:
			e.puts[putName{keyOfPut(o), revision}] = true
		case model.DeleteOperation:
			e.deletes[deleteName{o.Delete.Key, revision}] = true
		}
	}
}

// settle finds the outcome of one request, but for transactions.
func (s *settler) settle(op openOp) {
	switch op.request.Type {
	case model.LeaseGrant:
		// Nobody got to know the lease, so it has no effect on what is checked.
		s.outcomes[op.name] = outcome{}
	case model.LeaseRevoke:
		s.settleRevoke(op)
	case model.Compact:
		if !s.log.compacted[op.request.Compact.Revision] {
			s.outcomes[op.name] = outcome{}
		}
	}
}

func (s *settler) settleRevoke(op openOp) {
	id := op.request.LeaseRevoke.LeaseID
	at, ok := s.log.revoked[id]
	if !ok || s.answered.revoked[id] {
		s.outcomes[op.name] = outcome{}
		return
	}
	s.outcomes[op.name] = outcome{true, at}
	s.answered.revoked[id] = true // a later one finds no lease
}

// chosenBranch returns the operations that an answered transaction has carried out.
func chosenBranch(request model.EtcdRequest, response model.EtcdResponse) []model.EtcdOperation {
	if response.Txn.Failure {
		return request.Txn.OperationsOnFailure
	}
	return request.Txn.OperationsOnSuccess
}
