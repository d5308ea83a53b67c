package main

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

// opened is an operation without an answer.
func opened(call int64, request model.EtcdRequest) porcupine.Operation {
	return porcupine.Operation{Call: call, Return: call + 1, Input: request, Output: model.MaybeEtcdResponse{Error: "timeout"}}
}

// answeredDelete is an operation that deleted so many keys and was told the revision.
func answeredDelete(call int64, key string, deleted, revision int64) porcupine.Operation {
	return porcupine.Operation{Call: call, Return: call + 1, Input: txn(deleteOp(key)), Output: model.MaybeEtcdResponse{EtcdResponse: model.EtcdResponse{
		Revision: revision, Txn: &model.TxnResponse{Results: []model.EtcdOperationResult{{Deleted: deleted}}}}}}
}

func answeredPut(call int64, key, value string, revision int64) porcupine.Operation {
	return porcupine.Operation{Call: call, Return: call + 1, Input: txn(putOp(key, value, 0)), Output: model.MaybeEtcdResponse{EtcdResponse: model.EtcdResponse{
		Revision: revision, Txn: &model.TxnResponse{Results: []model.EtcdOperationResult{{}}}}}}
}

func conditional(expected int64, key string) model.EtcdRequest {
	r := txn(deleteOp(key))
	r.Txn.Conditions = []model.EtcdCondition{{Key: key, ExpectedRevision: expected}}
	return r
}

func compact(revision int64) model.EtcdRequest {
	return model.EtcdRequest{Type: model.Compact, Compact: &model.CompactRequest{Revision: revision}}
}

const (
	gone  = -1 // taken out
	stays = -2 // left as it was
)

func TestSettle(t *testing.T) {
	p := newPersisted()
	for _, f := range [][]byte{
		frame(putRecord(2, 0, "a", "1", 0)), frame(deleteRecord(3, 0, "a")),
		frame(putRecord(4, 0, "a", "2", 0)), frame(deleteRecord(5, 0, "a")),
		frame(numbers(recordGrant, 7, 60), putRecord(6, 0, "b", "3", 7), numbers(recordCompact, 4)),
		frame(deleteRecord(7, 0, "b"), numbers(recordRevoke, 7)),
	} {
		if err := p.addFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want []int64 // the revision, gone or stays
	}{
		"puts":                            {[]porcupine.Operation{opened(1, txn(putOp("a", "2", 0))), opened(3, txn(putOp("a", "9", 0)))}, []int64{4, gone}},
		"put with delete":                 {[]porcupine.Operation{opened(1, txn(putOp("a", "2", 0), deleteOp("b")))}, []int64{4}},
		"the same put again":              {[]porcupine.Operation{opened(5, txn(putOp("a", "2", 0))), opened(1, txn(putOp("a", "2", 0)))}, []int64{gone, 4}},
		"the same put, once answered":     {[]porcupine.Operation{opened(1, txn(putOp("a", "2", 0))), answeredPut(5, "a", "2", 4)}, []int64{gone, stays}},
		"grants":                          {[]porcupine.Operation{opened(1, grant(0))}, []int64{gone}},
		"compactions":                     {[]porcupine.Operation{opened(1, compact(4)), opened(3, compact(5))}, []int64{stays, gone}},
		"revoke":                          {[]porcupine.Operation{opened(1, revoke(7)), opened(3, revoke(7)), opened(5, revoke(8))}, []int64{7, gone, gone}},
		"deletes by call":                 {[]porcupine.Operation{opened(9, txn(deleteOp("a"))), opened(1, txn(deleteOp("a"))), opened(5, txn(deleteOp("a")))}, []int64{gone, 3, 5}},
		"deletes, one of them answered":   {[]porcupine.Operation{answeredDelete(1, "a", 1, 3), opened(4, txn(deleteOp("a")))}, []int64{stays, 5}},
		"an answer that deleted nothing":  {[]porcupine.Operation{answeredDelete(8, "a", 0, 3), opened(4, txn(deleteOp("a")))}, []int64{stays, 3}},
		"deletes with conditions":         {[]porcupine.Operation{opened(1, conditional(4, "a")), opened(3, conditional(2, "a")), opened(5, conditional(4, "a"))}, []int64{5, 3, gone}},
		"deletes with and without":        {[]porcupine.Operation{opened(1, conditional(4, "a")), opened(3, txn(deleteOp("a")))}, []int64{stays, stays}},
		"delete of what nobody deleted":   {[]porcupine.Operation{opened(1, txn(deleteOp("b")))}, []int64{gone}},
		"read in a transaction with none": {[]porcupine.Operation{opened(1, txn(model.EtcdOperation{Type: model.RangeOperation}))}, []int64{stays}},
	} {
		settled := settle([]report.ClientReport{{KeyValue: c.ops}}, p)[0].KeyValue
		for i, want := range c.want {
			if got := outcomeOf(settled, c.ops[i]); got != want {
				t.Errorf("%s: operation %d: got %d, want %d", name, i, got, want)
			}
		}
	}
}

// outcomeOf tells what became of op.
func outcomeOf(settled []porcupine.Operation, op porcupine.Operation) int64 {
	for _, s := range settled {
		if s.Call != op.Call {
			continue
		}
		if r := s.Output.(model.MaybeEtcdResponse); r.Persisted && s.Return == math.MaxInt64 {
			return r.PersistedRevision
		}
		return stays
	}
	return gone
}
