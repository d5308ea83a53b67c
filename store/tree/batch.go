package tree

// Record is one record of bucket "key".
type Record struct {
	Rev       Revision
	Tombstone bool
	Value     []byte // encoded mvccpb.KeyValue; a tombstone's has the key alone
}

// DeadRecord names a record to remove.
type DeadRecord struct {
	Rev       Revision
	Tombstone bool
}

// Batch is what one Apply changes. Deletes are done before puts. What is nil is
// left as it is.
type Batch struct {
	Put    []Record     // ascending
	Delete []DeadRecord // ascending; absent ones are passed over
	// More leaves the list of free pages, which can be most of what a commit writes, to the next
	// Apply, which should follow soon. A file without it is whole, but takes longer to open.
	More bool

	LeasePut    []LeaseRecord
	LeaseDelete []int64
	AlarmPut    []AlarmRecord
	AlarmDelete []AlarmRecord

	AuthEnabled          *bool
	AuthRevision         *uint64
	AuthUsers, AuthRoles []AuthRecord // in this order; one name may come more than once

	Seq              *uint64
	Term             *int64
	ScheduledCompact *int64
	FinishedCompact  *int64
	StoreID          *StoreID
	// Member becomes the only member.
	Member *MemberRecord
}
