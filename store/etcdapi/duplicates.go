package etcdapi

import (
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// touch is what an operation of a branch writes: a key, or with deleted set the
// keys in [key, end), or ≥ key if open.
type touch struct {
	op      int // position in the branch
	key     string
	end     string
	open    bool
	deleted bool
}

// checkDuplicates refuses a branch in which two operations write the same key,
// unless both delete it (TXN-4). A delete without upper end counts too (V-4).
func checkDuplicates(ops []*pb.RequestOp) error {
	if len(ops) == 1 && ops[0].GetRequestTxn() == nil {
		return nil
	}
	_, err := touches(ops)
	return err
}

// touches returns what a branch writes, and an error if two of its operations,
// or two inside a nested transaction's branch, collide. A nested transaction
// writes what either of its branches does.
func touches(ops []*pb.RequestOp) ([]touch, error) {
	var all []touch
	for i, op := range ops {
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			all = append(all, touch{op: i, key: string(r.RequestPut.Key)})
		case *pb.RequestOp_RequestDeleteRange:
			all = append(all, deleteTouch(i, r.RequestDeleteRange))
		case *pb.RequestOp_RequestTxn:
			for _, branch := range [][]*pb.RequestOp{r.RequestTxn.Success, r.RequestTxn.Failure} {
				inner, err := touches(branch)
				if err != nil {
					return nil, err
				}
				for _, t := range inner {
					t.op = i
					all = append(all, t)
				}
			}
		}
	}
	if collide(all) {
		return nil, rpctypes.ErrGRPCDuplicateKey
	}
	return all, nil
}

func deleteTouch(op int, r *pb.DeleteRangeRequest) touch {
	t := touch{op: op, key: string(r.Key), deleted: true}
	switch {
	case len(r.RangeEnd) == 0:
		t.end = t.key + "\x00"
	case len(r.RangeEnd) == 1 && r.RangeEnd[0] == 0:
		t.open = true
	default:
		t.end = string(r.RangeEnd)
	}
	return t
}

// collide tells whether two different operations put one key, or one puts what
// the other deletes. Puts are sorted, so that it takes n log n steps.
func collide(all []touch) bool {
	var puts []touch
	for _, t := range all {
		if !t.deleted {
			puts = append(puts, t)
		}
	}
	slices.SortFunc(puts, func(a, b touch) int { return strings.Compare(a.key, b.key) })
	// other[i] is the first put after i of another operation.
	other := make([]int, len(puts))
	for i := len(puts) - 1; i >= 0; i-- {
		other[i] = i + 1
		if i+1 < len(puts) && puts[i].op == puts[i+1].op {
			other[i] = other[i+1]
		}
		if j := other[i]; j < len(puts) && puts[j].key == puts[i].key {
			return true
		}
	}
	for _, t := range all {
		if t.deleted && coversOther(puts, other, t) {
			return true
		}
	}
	return false
}

// coversOther tells whether the delete t covers a put of another operation.
func coversOther(puts []touch, other []int, t touch) bool {
	i, _ := slices.BinarySearchFunc(puts, t.key, func(p touch, key string) int {
		return strings.Compare(p.key, key)
	})
	if i < len(puts) && puts[i].op == t.op {
		i = other[i]
	}
	return i < len(puts) && (t.open || puts[i].key < t.end)
}
