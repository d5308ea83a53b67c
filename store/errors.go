package store

import (
	"errors"
	"fmt"
)

// Errors of requests. The caller did something that can not be done; the store
// is unharmed.
var (
	// ErrCompacted is returned when a read, a compaction, a hash or a watch
	// names a revision below the compact revision.
	ErrCompacted = errors.New("required revision has been compacted")
	// ErrFutureRev is returned when a revision above the current one is named.
	ErrFutureRev = errors.New("required revision is a future revision")
	// ErrKeyNotFound is returned when a put keeps the value or the lease of a
	// key that does not exist.
	ErrKeyNotFound = errors.New("key not found")
	// ErrLeaseNotFound is returned when a put or a revoke names an unknown lease.
	ErrLeaseNotFound = errors.New("lease not found")
	// ErrLeaseExists is returned when a lease is granted with an ID in use.
	ErrLeaseExists = errors.New("lease already exists")
	// ErrLeaseTTLTooLarge is returned when a TTL above MaxLeaseTTL is asked for.
	ErrLeaseTTLTooLarge = errors.New("lease TTL is too large")
	// ErrWatchIDInUse is returned when a watch is created with an ID of the
	// same stream that is in use.
	ErrWatchIDInUse = errors.New("watch ID is in use")
	// ErrEmptyRange is returned when a watch is created on a range that can
	// hold no key.
	ErrEmptyRange = errors.New("key range is empty")
)

// Errors of the store's state. The request was fine.
var (
	// ErrNoSpace is returned when a write is refused because the quota is used
	// up, the NOSPACE alarm is on, or the file system is full. Nothing of the
	// request was kept. Deletes and compactions still work.
	ErrNoSpace = errors.New("no space left for this write")
	// ErrCorrupt is returned for writes while the CORRUPT alarm is on.
	ErrCorrupt = errors.New("store is marked corrupt")
	// ErrStopped is returned when the store is closing, or has stopped because
	// of a failed write or sync (see Store.Failed).
	ErrStopped = errors.New("store is stopped")
)

// Errors of opening a store.
var (
	// ErrInUse is returned when another process has the directory open; the
	// error's text names it.
	ErrInUse = errors.New("data directory is in use")
	// ErrForeign is returned when the directory does not hold the store that
	// Options.ExpectID names.
	ErrForeign = errors.New("data directory does not hold the expected store")
	// ErrDamaged is returned when the files contradict themselves. Nothing was
	// changed.
	ErrDamaged = errors.New("data directory is damaged")
	// ErrRestoring is returned when a restore has begun to exchange the files of
	// the directory and was cut off. ResumeRestore finishes it.
	ErrRestoring = errors.New("data directory is half restored")
)

// damage is an ErrDamaged with what a person can do about it.
func damage(err error) error {
	return fmt.Errorf("%w: %w; keep a copy of the directory, run `tarn check`, then put the missing file back or restore a snapshot", ErrDamaged, err)
}
