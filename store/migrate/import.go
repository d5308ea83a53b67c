package migrate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// The steps of an import, as Progress gets them.
const (
	StepHash   = "reading the hash" // in bytes
	StepCheck  = "checking"         // without numbers
	StepCopy   = "copying"          // in bytes of records
	StepVerify = "reading back"     // without numbers
)

// Options configure an import. Dir is needed unless DryRun is set.
type Options struct {
	Dir string // data directory; made if it is missing
	FS  vfs.FS // for what is written; default vfs.OS

	// SkipHashCheck takes a file without a hash at its end, or with a wrong one.
	SkipHashCheck bool
	// DryRun checks the source and writes nothing.
	DryRun bool
	// Progress, if set, is called now and then with what is being done. total is 0 where it is not
	// known.
	Progress func(step string, done, total int64)
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	return o
}

func (o Options) progress(step string, done, total int64) {
	if o.Progress != nil {
		o.Progress(step, done, total)
	}
}

// Report tells what an import found, and wrote unless it was a dry run.
type Report struct {
	StoreID         string // of the new store, in hexadecimal; "" after a dry run
	StorageVersion  string // of etcd's schema; "" up to etcd 3.5
	Revision        int64
	CompactRevision int64 // -1 if never compacted
	Keys            int64
	Records         int64  // uncompacted changes, deletions included
	Hash            uint32 // HashKV at Revision
	Leases          int
	Alarms          int
	Users, Roles    int
	AuthEnabled     bool
	LeftOut         []string // buckets of the source that have no meaning here
}

// ImportSnapshot makes a store in o.Dir from a file that `snapshot save` wrote, of etcd or of Tarn, or
// from a member's database (with SkipHashCheck). It keeps revisions, keys, leases, alarms, users, roles
// and the compaction's state; what says which member and which cluster the file is from is left out,
// and the store gets an identity of its own.
//
// All of the file is checked before something is written. ErrSource, ErrTarget and the system's own
// errors are returned, and then nothing is left behind. A crash leaves at most a file that the
// next import in that directory removes, and without which no store is begun there.
func ImportSnapshot(ctx context.Context, path string, o Options) (Report, error) {
	o = o.withDefaults()
	if !o.DryRun {
		if err := checkTarget(o); err != nil { // before the long part
			return Report{}, err
		}
	}
	s, err := openSource(ctx, path, o)
	if err != nil {
		return Report{}, err
	}
	defer s.tree.Close()
	r := s.report()
	if o.DryRun {
		r.Records, err = s.count(ctx)
		return r, err
	}
	id := store.NewID()
	r.StoreID = hex.EncodeToString(id[:])
	r.Records, err = write(ctx, s, id, o)
	return r, err
}

func (s *source) report() Report {
	return Report{
		StorageVersion: s.meta.StorageVersion, Revision: s.check.Revision, CompactRevision: s.check.CompactRevision,
		Keys: s.check.Keys, Hash: s.check.Hash, Leases: len(s.leases), Alarms: len(s.alarms),
		Users: len(s.auth.Users), Roles: len(s.auth.Roles), AuthEnabled: s.auth.Enabled, LeftOut: s.left,
	}
}

// count counts the records.
func (s *source) count(ctx context.Context) (n int64, err error) {
	v := s.tree.View()
	defer v.Close()
	err = v.Scan(tree.Revision{}, func(tree.Revision, bool, []byte) bool {
		n++
		return n%lookAround != 0 || ctx.Err() == nil
	})
	return n, errors.Join(err, ctx.Err())
}

// lookAround is the number of records between two looks at the context.
const lookAround = 4096

// explain says what a person can do about an error of the tree.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, tree.ErrLocked):
		return fmt.Errorf("%w: %s is in use, probably by an etcd that runs; stop it, or import what `etcdctl snapshot save` writes", ErrSource, path)
	case errors.Is(err, tree.ErrDamaged), errors.Is(err, tree.ErrForeign):
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	return err
}
