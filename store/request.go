package store

// The requests of the key space. A caller validates form (empty keys, number of
// operations, duplicate keys) before; the store checks what depends on its state.

// Order is the order of a range's result.
type Order int8

const (
	OrderNone Order = iota // as ascending, by the key unless another target is set
	OrderAscend
	OrderDescend
)

// Target is what a result is ordered by.
type Target int8

const (
	ByKey Target = iota
	ByVersion
	ByCreate
	ByMod
	ByValue
)

// RangeRequest asks for the live keys of a range at one revision.
type RangeRequest struct {
	KeyRange
	Revision  int64 // ≤ 0: the current one
	Limit     int64 // ≤ 0: none
	Order     Order
	Target    Target
	KeysOnly  bool // the values are not wanted
	CountOnly bool // only Count is wanted; Limit, order and bounds are ignored

	// Inclusive bounds, 0 = off. They are applied before order and limit, and
	// not to Count.
	MinMod, MaxMod, MinCreate, MaxCreate int64
}

// PutRequest writes one key.
type PutRequest struct {
	Key, Value  []byte
	Lease       int64 // 0: none; the key leaves the lease it had
	PrevKV      bool
	IgnoreValue bool // keep the value; the key must exist
	IgnoreLease bool // keep the lease; the key must exist
}

// DeleteRequest deletes the live keys of a range.
type DeleteRequest struct {
	KeyRange
	PrevKV bool
}

// CompareTarget is the side of a Compare that is stored.
type CompareTarget int8

const (
	CompareVersion CompareTarget = iota
	CompareCreate
	CompareMod
	CompareValue
	CompareLease
)

// CompareResult is what the comparison must give, stored side on the left.
type CompareResult int8

const (
	Equal CompareResult = iota
	Greater
	Less
	NotEqual
)

// Compare is a condition on every key of a range. An empty range compares like
// one missing key: its numbers are 0, and a comparison of its value is false.
type Compare struct {
	KeyRange
	Target CompareTarget
	Result CompareResult
	Int    int64  // for all targets but CompareValue
	Value  []byte // for CompareValue
}

// Op is one operation of a transaction: exactly one field is set.
type Op struct {
	Range  *RangeRequest
	Put    *PutRequest
	Delete *DeleteRequest
	Txn    *TxnRequest
}

// TxnRequest executes Success if all compares hold, else Failure. Compares,
// also those of nested transactions, see the state before the transaction.
type TxnRequest struct {
	Compare          []Compare
	Success, Failure []Op
}

// Item is one record of a key, without its value.
type Item struct {
	Key     string
	Create  int64 // create_revision
	Rev     Revision
	Version int64
	Lease   int64
	Size    int // bytes of the encoded mvccpb.KeyValue
}

// RangeResult is the answer to a RangeRequest. It must be closed: until then its
// values are safe from compaction.
type RangeResult struct {
	Revision int64 // the store's revision when the request was evaluated
	At       int64 // the revision that was read
	Items    []Item
	Count    int64 // live keys of the whole range, without limit and bounds
	More     bool  // the limit cut something off

	pin
}

// OpResult is the answer to one Op.
type OpResult struct {
	// Revision is the transaction's revision if something had been written
	// when the operation was done, else the one before.
	Revision int64
	Items    []Item // Range: the result; Put, Delete: the previous records, if asked for
	Count    int64  // Range: Count; Delete: number of keys deleted
	More     bool
	Txn      *TxnResult // nested transaction
}

// TxnResult is the answer to a TxnRequest. The outermost one must be closed, as a RangeResult.
type TxnResult struct {
	Revision  int64
	Succeeded bool
	Ops       []Op // the branch that was executed
	Results   []OpResult

	pin
}
