package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRestoreAgainAfterLoss: the state of a restore is lost as well, with what clients saw of it. The next
// restore of the same snapshot goes above that, so that their watches are cancelled.
func TestRestoreAgainAfterLoss(t *testing.T) {
	s := busyStore(t, 4)
	snapshot := copyTree(t, s.opts.Dir)
	must(t, s.Close())
	now := advanceSince.Add(1000 * time.Hour)
	seen := s.Revision()
	for i := range 3 {
		dir := filepath.Join(t.TempDir(), "lost")
		o := RestoreOptions{Dir: dir, Source: snapshot, Time: now}
		if i == 2 { // a damaged one, not a missing one
			must(t, os.CopyFS(dir, os.DirFS(snapshot)))
			must(t, os.Truncate(filepath.Join(dir, treeName), 9_000))
		}
		r, restored := restoreInto(t, o)
		if r.Revision <= seen {
			t.Fatalf("restore %d: revision %d, and %d was handed out", i, r.Revision, seen)
		}
		if compacted := watchCancelledAt(t, restored, seen+1); compacted != r.Revision {
			t.Errorf("restore %d: the watch was cancelled with %d instead of %d", i, compacted, r.Revision)
		}
		for j := range 20 {
			seen = put(t, restored, fmt.Sprint("k", j), "x")
		}
		must(t, restored.Close())
		now = now.Add(time.Second)
	}
}

func TestAdvanceUnknownBeforeItsBegin(t *testing.T) {
	if a := advanceUnknownAt(advanceSince.Add(-time.Hour)); a != advanceUnknown {
		t.Errorf("with a clock that is wrong: %d", a)
	}
	if a := advanceUnknownAt(advanceSince.Add(90 * time.Second)); a != advanceUnknown+90*advancePerSecond {
		t.Errorf("after 90 seconds: %d", a)
	}
}

// TestRestoreReadsWhatIsLeft: what a damaged state, or one that was kept, still tells counts as handed out.
func TestRestoreReadsWhatIsLeft(t *testing.T) {
	for what, harm := range map[string]func(dir string) error{
		"log without a tree": func(dir string) error { return os.Remove(filepath.Join(dir, treeName)) },
		"tree without a log": func(dir string) error { return os.RemoveAll(filepath.Join(dir, walName)) },
		"kept by a restore": func(dir string) error {
			aside := filepath.Join(dir, asideName+"20261130T000000Z")
			return errors.Join(os.Mkdir(aside, 0o700), os.Rename(filepath.Join(dir, treeName), filepath.Join(aside, treeName)),
				os.Rename(filepath.Join(dir, walName), filepath.Join(aside, walName)))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := busyStore(t, 3)
			snapshot := copyTree(t, s.opts.Dir)
			for range 100 {
				put(t, s, "later", "x")
			}
			if what == "tree without a log" {
				must(t, s.Checkpoint(bg))
			}
			dir, seen := copyTree(t, s.opts.Dir), s.Revision()
			must(t, harm(dir))
			r, err := Restore(bg, RestoreOptions{Dir: dir, Source: snapshot, Time: advanceSince, DryRun: true})
			must(t, err)
			if r.OldRevision != 0 || r.Revision != seen+advanceUnknown {
				t.Errorf("%+v, and %d was handed out", r, seen)
			}
		})
	}
}

// TestRestoreOtherStoreOverDamage: that the present state can not be read is no reason to take another store.
func TestRestoreOtherStoreOverDamage(t *testing.T) {
	mine, other := busyStore(t, 1), busyStore(t, 2)
	snapshot := copyTree(t, other.opts.Dir)
	for what, c := range map[string]struct {
		harm  func(dir string) error
		known string
	}{
		"as its snapshots tell": {func(dir string) error { return os.Truncate(filepath.Join(dir, treeName), 9_000) }, mine.ID()},
		"as its own tree tells": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, walName)) }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := copyTree(t, mine.opts.Dir)
			must(t, c.harm(dir))
			o := RestoreOptions{Dir: dir, Source: snapshot, KnownStore: c.known}
			if _, err := Restore(bg, o); !errors.Is(err, ErrRestoreTarget) || !strings.Contains(err.Error(), "--other-store") || !strings.Contains(err.Error(), mine.ID()) {
				t.Errorf("%v", err)
			}
			o.OtherStore = true
			r, restored := restoreInto(t, o)
			if restored.ID() != other.ID() || r.OldProblem == "" {
				t.Errorf("%+v", r)
			}
		})
	}
}
