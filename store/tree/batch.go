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
