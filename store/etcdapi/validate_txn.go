package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// checkTxn checks a transaction and all nested ones (TXN-1 to TXN-4). maxOps is
// the budget of operations of the outermost.
func checkTxn(r *pb.TxnRequest, maxOps int) error {
	if err := checkTxnForm(r, maxOps); err != nil {
		return err
	}
	if err := checkDuplicates(r.Success); err != nil {
		return err
	}
	return checkDuplicates(r.Failure)
}

func checkTxnForm(r *pb.TxnRequest, maxOps int) error {
	n := max(len(r.Compare), len(r.Success), len(r.Failure))
	if n > maxOps {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if err := checkCompare(c); err != nil {
			return err
		}
	}
	for _, op := range r.Success {
		if err := checkOp(op, maxOps-n); err != nil {
			return err
		}
	}
	for _, op := range r.Failure {
		if err := checkOp(op, maxOps-n); err != nil {
			return err
		}
	}
	return nil
}

// checkCompare refuses numbers that it does not know: etcd takes them for true (V-11).
func checkCompare(c *pb.Compare) error {
	if len(c.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if _, ok := pb.Compare_CompareTarget_name[int32(c.Target)]; !ok {
		return errUnknownCompare
	}
	if _, ok := pb.Compare_CompareResult_name[int32(c.Result)]; !ok {
		return errUnknownCompare
	}
	return nil
}

func checkOp(op *pb.RequestOp, maxOps int) error {
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(r.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(r.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(r.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return checkTxnForm(r.RequestTxn, maxOps)
	default:
		return rpctypes.ErrGRPCKeyNotFound // etcd's text for an operation without content
	}
}

// readOnly tells whether a transaction can change nothing, whatever its compares
// say. One with a nested transaction counts as a write, as in etcd (TXN-12).
func readOnly(r *pb.TxnRequest) bool {
	return onlyRanges(r.Success) && onlyRanges(r.Failure)
}

func onlyRanges(ops []*pb.RequestOp) bool {
	for _, op := range ops {
		if op.GetRequestRange() == nil {
			return false
		}
	}
	return true
}
