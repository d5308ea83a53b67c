package etcdapi

import (
	"github.com/tarn-kv/tarn/store"
)

// tailRoom is enough for the fields of a response after its KeyValues, or for
// the frame of one operation's response, its header included.
const tailRoom = headRoom + 32

// txnSize is enough for the content of a TxnResponse.
func txnSize(res *store.TxnResult) int {
	n := tailRoom
	for i := range res.Ops {
		op, r := &res.Ops[i], &res.Results[i]
		n += tailRoom
		switch {
		case op.Range != nil:
			n += itemsSize(r.Items, rangeKvs, op.Range.KeysOnly)
		case op.Txn != nil:
			n += txnSize(r.Txn)
		default:
			n += itemsSize(r.Items, putPrevKv, false)
		}
	}
	return n
}

// appendTxn adds the content of a TxnResponse. A nested one has an empty header
// (HDR-3), its responses only a revision (HDR-2).
func appendTxn(st *store.Store, dst []byte, h head, res *store.TxnResult) ([]byte, error) {
	dst = h.append(dst)
	dst = appendBool(dst, txnSucceeded, res.Succeeded)
	for i := range res.Ops {
		var start int
		var err error
		dst, start = beginMessage(dst, txnResponses)
		if dst, err = appendOp(st, dst, &res.Ops[i], &res.Results[i]); err != nil {
			return nil, err
		}
		dst = endMessage(dst, start)
	}
	return dst, nil
}

// appendOp adds the content of a ResponseOp.
func appendOp(st *store.Store, dst []byte, op *store.Op, r *store.OpResult) (_ []byte, err error) {
	var start int
	h := revisionOnly(r.Revision)
	switch {
	case op.Range != nil:
		dst, start = beginMessage(dst, opRange)
		dst, err = appendRange(st, dst, h, op.Range, r)
	case op.Put != nil:
		dst, start = beginMessage(dst, opPut)
		dst, err = appendPut(st, dst, h, r)
	case op.Delete != nil:
		dst, start = beginMessage(dst, opDelete)
		dst, err = appendDelete(st, dst, h, r)
	default:
		dst, start = beginMessage(dst, opTxn)
		dst, err = appendTxn(st, dst, head{}, r.Txn)
	}
	if err != nil {
		return nil, err
	}
	return endMessage(dst, start), nil
}

// appendRange adds the content of a RangeResponse.
func appendRange(st *store.Store, dst []byte, h head, req *store.RangeRequest, r *store.OpResult) ([]byte, error) {
	dst = h.append(dst)
	dst, err := appendItems(st, dst, r.Items, rangeKvs, req.KeysOnly)
	if err != nil {
		return nil, err
	}
	return appendRangeEnd(dst, r.More, r.Count), nil
}

func appendRangeEnd(dst []byte, more bool, count int64) []byte {
	dst = appendBool(dst, rangeMore, more)
	return appendUint(dst, rangeCount, uint64(count))
}

// appendPut adds the content of a PutResponse.
func appendPut(st *store.Store, dst []byte, h head, r *store.OpResult) ([]byte, error) {
	return appendItems(st, h.append(dst), r.Items, putPrevKv, false)
}

// appendDelete adds the content of a DeleteRangeResponse.
func appendDelete(st *store.Store, dst []byte, h head, r *store.OpResult) ([]byte, error) {
	dst = appendUint(h.append(dst), deleteDeleted, uint64(r.Count))
	return appendItems(st, dst, r.Items, deletePrevKvs, false)
}
