package zfs

import (
	"context"
	"time"
)

// Snapshots are the snapshots of one data directory: of its dataset (Dataset),
// or file copies beside it (Copies). Only our own are seen and touched: those
// whose name ParseName reads and that carry PropRevision themselves; and copies
// whose description is damaged, so that they do not vanish without a word. A name
// is one without the dataset. All errors of a snapshot that is not there are
// ErrNotFound.
//
// The methods can be used from several goroutines and processes at once.
type Snapshots interface {
	// Source names what the snapshots are of: the dataset or the directory.
	Source() string
	// Dir is the data directory, or "" if its dataset is not mounted.
	Dir() string
	// List returns our snapshots, the oldest first, in the order in which they
	// were made, whatever the clock was.
	List(ctx context.Context) ([]Snapshot, error)
	// Create makes a snapshot.
	Create(ctx context.Context, opts CreateOptions) (Snapshot, error)
	// Hold keeps a snapshot from being destroyed until the same tag is released.
	// Holding twice with one tag is holding once.
	Hold(ctx context.Context, name, tag string) error
	// Release takes a hold away. It is no error if there is none of that tag.
	Release(ctx context.Context, name, tag string) error
	// Destroy destroys one snapshot. ErrBusy or ErrHasClones are returned when
	// something keeps it, ErrNotOurs when a snapshot of that name is not ours.
	Destroy(ctx context.Context, name string) error
	// SetProperty sets one of the properties of a snapshot.
	SetProperty(ctx context.Context, name, property, value string) error
	// Open gives the data directory as the snapshot holds it, to be read only.
	// cleanup must be called when done; until then the snapshot can be busy.
	// ErrNotMounted is returned when the dataset is not mounted.
	// ErrDamaged is returned when its description is damaged (Snapshot.Problem).
	Open(ctx context.Context, name string) (dir string, cleanup func() error, err error)
	// CheckFiles reads all files of a snapshot and compares them with what was
	// recorded of them when it was made. ErrDamaged is returned when they differ,
	// and says which, or when its description is damaged. It is nil where nothing
	// was recorded: on ZFS, which has checksums of its own, and for copies that an
	// older version made. CheckCopy does the same for a copy anywhere.
	CheckFiles(ctx context.Context, name string) error
}

// Snapshot is what is known of one snapshot.
type Snapshot struct {
	Name    string    `json:"name"` // without the dataset
	Created time.Time `json:"created"`
	// Order rises from each snapshot of a dataset to the next, whatever the clock
	// does: the transaction group on ZFS, a counter for file copies.
	Order uint64 `json:"order"`
	GUID  string `json:"guid"` // the same on a received copy of the snapshot

	Revision int64         `json:"revision"` // at least this one is in the snapshot
	StoreID  string        `json:"storeID,omitempty"`
	Version  string        `json:"version,omitempty"` // of tarn
	Label    string        `json:"label,omitempty"`
	Verified *Verification `json:"verified,omitempty"` // nil: never, or not recorded
	// Problem is why the description of a file copy can not be read, "" if it can.
	// With one, Created and Revision are those in the name, Order is guessed from
	// them, the rest is not known, and nothing but Destroy takes the snapshot.
	Problem string `json:"problem,omitempty"`

	SizeBytes   int64 `json:"sizeBytes"`   // what the snapshot refers to
	UniqueBytes int64 `json:"uniqueBytes"` // what would be freed by destroying it alone

	Holds  []string `json:"holds,omitempty"`  // tags
	Clones []string `json:"clones,omitempty"` // datasets
}

// CreateOptions say what a snapshot is to carry.
type CreateOptions struct {
	Time     time.Time // for the name
	Revision int64
	StoreID  string
	Version  string
	Label    string // "" for none
	Hold     string // tag to hold it with from the start, "" for none
	// Files are, for file copies only, the names in the data directory to copy;
	// those that are not there are left out. Nothing may write to them meanwhile.
	Files []string
	// Fill, for file copies only, puts the content into the empty directory dir
	// instead of the files of the data directory. It need not sync them.
	Fill func(ctx context.Context, dir string) error
}
