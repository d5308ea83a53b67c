package store

import (
	"log/slog"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// MaxLeaseTTL is the largest TTL of a lease, in seconds (etcd's limit).
const MaxLeaseTTL = 9_000_000_000

// MinLeaseTTL is the smallest TTL of a lease, in seconds: a smaller one is raised
// to it. It is etcd's with its default election timeout.
const MinLeaseTTL = 2

// DefaultQuota is the default of Options.Quota in bytes (etcd's).
const DefaultQuota = 2 << 30

const defaultCheckpointBytes = 16 << 20

// Options configure a Store. Only Dir is needed.
type Options struct {
	Dir    string
	FS     vfs.FS       // default vfs.OS
	Logger *slog.Logger // default: discards

	// ExpectID, if set, is the ID that the store in Dir must have. An empty
	// directory, or another store, is then refused with ErrForeign.
	ExpectID string

	// AllowMissingLog accepts a tree whose log is missing or ends too early, as
	// in a restored snapshot. What was only in the log is gone.
	AllowMissingLog bool

	// Quota limits the bytes in use, in the tree and in the log (see
	// Status.InUse): 0 means DefaultQuota, negative no limit.
	Quota int64

	// CheckpointBytes is the size of the tail that causes a checkpoint
	// (default 16 MiB).
	CheckpointBytes int64
	// CheckpointAge is how long a change stays in the log alone at most
	// (default 5 min).
	CheckpointAge time.Duration

	// ProgressInterval is the time between unasked progress messages to a watch
	// that wants them (default 10 min, at least 100 ms).
	ProgressInterval time.Duration

	// ObserveSync and ObserveCheckpoint, if set, get the duration of each
	// sync of the log and of each commit of the tree.
	ObserveSync       func(time.Duration)
	ObserveCheckpoint func(time.Duration)
	// ObservePublish, if set, is called by the writer each time that something has become
	// durable and visible: it must not wait.
	ObservePublish func()
	// ObserveRecovery, if set, is called by Open's goroutine again and again while recovery goes
	// on, with the number of records read so far. Where it is not called any more, recovery
	// is at one long step, or hangs.
	ObserveRecovery func(records int)

	// segmentBytes and reserveBytes are the sizes of a segment and of the
	// reserve of the log. Tests make them small.
	segmentBytes, reserveBytes int64
	// freedWithin is how long the space of a removed file can take to be there
	// again. Tests make it short.
	freedWithin time.Duration
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Quota == 0 {
		o.Quota = DefaultQuota
	}
	if o.CheckpointBytes <= 0 {
		o.CheckpointBytes = defaultCheckpointBytes
	}
	if o.CheckpointAge <= 0 {
		o.CheckpointAge = 5 * time.Minute
	}
	if o.reserveBytes <= 0 {
		o.reserveBytes = defaultReserve
	}
	if o.freedWithin <= 0 {
		o.freedWithin = 30 * time.Second
	}
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = 10 * time.Minute
	}
	o.ProgressInterval = max(o.ProgressInterval, 100*time.Millisecond)
	return o
}
