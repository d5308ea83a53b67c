package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// safetyTag holds the snapshots that a restore makes of the state that it replaces.
const safetyTag = "before-restore"

// safetySnapshot is the snapshot of the state that a restore replaces.
type safetySnapshot struct {
	of   *zfs.Dataset
	warn io.Writer
	name string // "" if there is none
	made bool   // by this restore
}

// take makes and holds the snapshot. That it could not be made is told, and no reason to stop: the state
// is kept aside as well.
func (s *safetySnapshot) take(ctx context.Context, known store.RestoreReport, restored string) {
	if s.of.Dir() == "" || known.OldRevision == 0 && known.OldProblem == "" {
		return // there is nothing to make one of
	}
	ctx = context.WithoutCancel(ctx) // what is half made would be known to nobody, and held
	if s.name = s.earlier(ctx, known); s.name != "" {
		return
	}
	made, err := s.of.Create(ctx, zfs.CreateOptions{
		Time: time.Now(), Revision: known.OldRevision, StoreID: known.OldStoreID, Version: tarnVersion,
		Label: zfs.SafetyLabel + filepath.Base(restored), Hold: safetyTag,
	})
	if err != nil {
		fmt.Fprintf(s.warn, "tarn: no snapshot of the present state was made, but it is kept aside: %v\n", err)
		return
	}
	s.name, s.made = made.Name, true
}

// earlier is the held snapshot that an earlier restore has made of the same state, if it is the newest of
// all: that restore was cut off before it replaced the state, and no write came after it.
func (s *safetySnapshot) earlier(ctx context.Context, known store.RestoreReport) string {
	snaps, err := s.of.List(ctx)
	if err != nil || len(snaps) == 0 || known.OldRevision == 0 || known.OldStoreID == "" {
		return ""
	}
	last := snaps[len(snaps)-1]
	for _, tag := range last.Holds {
		if tag == safetyTag && last.IsSafety() && last.Revision == known.OldRevision && last.StoreID == known.OldStoreID {
			return last.Name
		}
	}
	return ""
}

// giveBack removes the snapshot after a restore that has changed nothing. One that an earlier restore has
// made stays.
func (s *safetySnapshot) giveBack(ctx context.Context) {
	if !s.made {
		return
	}
	ctx = context.WithoutCancel(ctx) // an interrupted restore leaves none either
	err := s.of.Release(ctx, s.name, safetyTag)
	if err == nil {
		err = s.of.Destroy(ctx, s.name)
	}
	if err != nil && !errors.Is(err, zfs.ErrNotFound) {
		fmt.Fprintf(s.warn, "tarn: the snapshot %s of the present state, which was not replaced, could not be removed: %v; "+
			"remove it with tarn snapshot release --tag %s %s, and tarn snapshot destroy %s\n", s.name, err, safetyTag, s.name, s.name)
	}
}
