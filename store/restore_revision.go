package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/wal"
)

const (
	// advanceKnown is how far a restore moves the revision above the newest one that it can
	// read. That one was durable; more can have been handed out if the file system's syncs were switched
	// off and the power failed, and revisions cost nothing.
	advanceKnown = 1_000_000
	// advanceUnknown is the same where nobody can tell what was handed out. There an earlier restore of
	// the same snapshot can have been lost too, with all that was written after it, so advancePerSecond
	// is added for each second of the clock since advanceSince: more revisions than a server hands out.
	advanceUnknown   = 1_000_000_000
	advancePerSecond = 100_000
	// leastAdvance makes a watch from the next revision of the old state one from before the new
	// compact revision, so that it is cancelled.
	leastAdvance = 2
	// maxRevision is the largest one that a restore makes: far from what a tree can hold.
	maxRevision = 1 << 62
)

var advanceSince = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// advanceUnknownAt is how far the revision moves at a time when the present state is not known.
func advanceUnknownAt(now time.Time) int64 {
	return advanceUnknown + advancePerSecond*max(0, int64(now.Sub(advanceSince)/time.Second))
}

// choose chooses the revision of the new state.
func (x *restorer) choose() error {
	r := &x.report
	if x.Advance < 0 {
		r.Revision = r.SnapshotRevision
		return nil
	}
	advance := x.Advance
	if advance == 0 {
		advance = advanceUnknownAt(x.Time)
		if r.OldRevision > 0 {
			advance = advanceKnown
		}
	}
	known := max(r.OldRevision, r.SnapshotRevision, x.Known, x.old.left)
	if known > maxRevision-advance {
		return fmt.Errorf("%w: the revision %d can not be moved by %d: revisions would run out", ErrRestoreTarget, known, advance)
	}
	r.Revision = known + advance
	return nil
}

// lookAtRest finds what can still be told of a state that can not be read as a whole: the store it is
// of, and a revision that was handed out. Both are kept from what earlier restores have kept, too.
func (x *restorer) lookAtRest(ctx context.Context, names []string) error {
	dirs := []string{x.Dir}
	for _, name := range names {
		if strings.HasPrefix(name, asideName) {
			dirs = append(dirs, filepath.Join(x.Dir, name))
		}
	}
	for _, dir := range dirs {
		id, revision := restOf(dir, x.source.StoreID)
		if dir == x.Dir {
			x.report.OldStoreID = id
		}
		x.old.left = max(x.old.left, revision)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// restOf reads the head of a tree and the frames of a log, as far as they are good. id is the store that
// the tree is of, "" if that can not be read; the log is then read as one of the store expected.
func restOf(dir, expected string) (id string, revision int64) {
	t, err := tree.Open(tree.Options{Path: filepath.Join(dir, treeName), ReadOnly: true})
	if err == nil {
		if meta, err := t.Meta(); err == nil && meta.StoreID != (tree.StoreID{}) {
			id, revision = hex.EncodeToString(meta.StoreID[:]), meta.Revision
			expected = id
		}
		_ = t.Close() // it was only read
	}
	log := wal.Options{Dir: filepath.Join(dir, walName), FS: vfs.OS}
	if n, err := hex.Decode(log.StoreID[:], []byte(expected)); err != nil || n != len(log.StoreID) {
		return id, revision
	}
	seen := newestOf{&revision}
	// What is damaged in it is the reason for being here.
	_, _ = wal.Check(log, func(_ uint64, payload []byte) error {
		_ = decodeFrame(append([]byte(nil), payload...), seen)
		return nil
	})
	return id, revision
}

// newestOf keeps the newest revision of what is replayed.
type newestOf struct{ revision *int64 }

func (n newestOf) replayChange(rev Revision, _ bool, _ []byte) error {
	*n.revision = max(*n.revision, rev.Main)
	return nil
}

func (newestOf) replayControl(control) error { return nil }
