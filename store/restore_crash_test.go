package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// restoreCase is a data directory in a simulated file system, and a snapshot of an earlier state.
type restoreCase struct {
	snapshot, dir  string // dir is made anew by begin
	original       string
	before, after  string // what the two states hold
	oldRev, newRev int64
}

// smallStore has small files, for tests that copy them often.
func smallStore(dir string) Options {
	return Options{Dir: dir, segmentBytes: 4096, reserveBytes: 4096, freedWithin: 1}
}

func newRestoreCase(t *testing.T) *restoreCase {
	s := openStore(t, smallStore(t.TempDir()))
	for i := range 20 {
		put(t, s, fmt.Sprint("k", i%7), fmt.Sprint("v", i))
	}
	must(t, s.Checkpoint(bg))
	put(t, s, "log", "only in the log")
	c := &restoreCase{snapshot: copyTree(t, s.opts.Dir), after: contentOf(t, s)}
	put(t, s, "ghost", "x")
	c.before, c.oldRev = contentOf(t, s), s.Revision()
	c.newRev = c.oldRev + advanceKnown
	c.original = copyTree(t, s.opts.Dir)
	return c
}

// begin makes a fresh copy of the directory in a file system of its own.
func (c *restoreCase) begin(t *testing.T) (*simfs.FS, RestoreOptions) {
	root := t.TempDir()
	c.dir = filepath.Join(root, "data")
	must(t, os.CopyFS(c.dir, os.DirFS(c.original)))
	sim, err := simfs.New(root)
	must(t, err)
	return sim, RestoreOptions{Dir: c.dir, Source: c.snapshot, FS: sim, Snapshot: "tarn-test", Time: time.Unix(1, 0)}
}

// wantOldOrNew: there is the whole old state, or the whole new one with the old one kept, or one to
// be finished, with which no server starts. It reports which.
func (c *restoreCase) wantOldOrNew(t *testing.T, dir string) (state string) {
	t.Helper()
	s, err := Open(smallStore(dir))
	if errors.Is(err, ErrRestoring) {
		if _, err := Check(bg, dir); !errors.Is(err, ErrRestoring) {
			t.Errorf("a check: %v", err)
		}
		if _, err := OpenView(bg, dir); !errors.Is(err, ErrRestoring) {
			t.Errorf("a view: %v", err)
		}
		if _, err := Restore(bg, RestoreOptions{Dir: dir, Source: c.snapshot}); !errors.Is(err, ErrRestoring) {
			t.Errorf("another restore: %v", err)
		}
		r, err := ResumeRestore(dir, nil)
		must(t, err)
		if r.Revision != c.newRev || r.Aside == "" {
			t.Errorf("%+v", r)
		}
		if again := c.wantOldOrNew(t, dir); again != "new" {
			t.Errorf("after it was finished the state is %s", again)
		}
		return "to be finished"
	}
	must(t, err)
	defer s.Close()
	if s.Revision() == c.oldRev {
		wantState(t, s, c.before)
		return "old"
	}
	wantState(t, s, c.after)
	if s.Revision() != c.newRev {
		t.Errorf("revision %d instead of %d", s.Revision(), c.newRev)
	}
	aside, err := filepath.Glob(filepath.Join(dir, asideName+"*"))
	must(t, err)
	if len(aside) != 1 {
		t.Fatalf("kept: %q", aside)
	}
	kept, err := Open(smallStore(aside[0]))
	must(t, err)
	defer kept.Close()
	wantState(t, kept, c.before)
	return "new"
}

// restoreAfter restores once more, without faults.
func (c *restoreCase) restoreAfter(t *testing.T, dir string) {
	t.Helper()
	r, err := Restore(bg, RestoreOptions{Dir: dir, Source: c.snapshot, Time: time.Unix(2, 0)})
	must(t, err)
	if names, err := vfs.OS.List(dir); err != nil || slices.Contains(names, stagingName) || slices.Contains(names, RestoreJournal) {
		t.Errorf("left: %q, %v", names, err)
	}
	s, err := Open(smallStore(dir))
	must(t, err)
	defer s.Close()
	if s.Revision() != r.Revision || r.Revision <= c.oldRev {
		t.Errorf("revision %d, %+v", s.Revision(), r)
	}
	wantState(t, s, c.after)
}

var errRestoreDisk = errors.New("the disk is broken")

// TestRestoreFailsAtEveryOperation: an error leaves the old state, or what ResumeRestore finishes.
func TestRestoreFailsAtEveryOperation(t *testing.T) {
	c := newRestoreCase(t)
	seen := map[string]bool{}
	for n := 1; ; n++ {
		sim, o := c.begin(t)
		fault := errRestoreDisk
		if n%2 == 0 {
			fault = syscall.ENOSPC
		}
		sim.FailAt(n, fault)
		_, err := Restore(bg, o)
		if sim.Ops() < n {
			must(t, err)
			if n < 15 || !seen["old"] || !seen["to be finished"] || !seen["new"] {
				t.Errorf("%d operations, states %v", n, seen)
			}
			return
		}
		sim.SetHook(nil)
		if err != nil && !errors.Is(err, fault) {
			t.Errorf("operation %d: %v", n, err)
		}
		state := c.wantOldOrNew(t, c.dir)
		seen[state] = true
		if (state == "to be finished") != errors.Is(err, ErrRestoring) {
			t.Errorf("operation %d: the state is %s after %v", n, state, err)
		}
		if state == "old" {
			if names, err := vfs.OS.List(c.dir); err != nil || len(names) != 3 {
				t.Errorf("operation %d: left are %q, %v", n, names, err)
			}
		}
		c.restoreAfter(t, c.dir)
	}
}

// TestRestorePowerCut: whatever the disk holds then is the old state, the new one, or one to be finished.
func TestRestorePowerCut(t *testing.T) {
	c := newRestoreCase(t)
	seen := map[string]bool{}
	images := uint64(3)
	if testing.Short() || raceEnabled {
		images = 1
	}
	for n := 1; ; n++ {
		sim, o := c.begin(t)
		sim.CrashAt(n)
		_, err := Restore(bg, o)
		if !sim.WasCut() {
			must(t, err)
			if !seen["old"] || !seen["to be finished"] || !seen["new"] {
				t.Errorf("%d operations, states %v", n, seen)
			}
			return
		}
		for seed := range images {
			image := t.TempDir()
			must(t, sim.Image(image, rand.New(rand.NewPCG(uint64(n), seed))))
			dir := filepath.Join(image, "data")
			seen[c.wantOldOrNew(t, dir)] = true
			c.restoreAfter(t, dir)
			if t.Failed() {
				t.Fatalf("operation %d, seed %d", n, seed)
			}
		}
	}
}

// TestResumeRestorePowerCut: finishing can be cut off as well, at each of its operations.
func TestResumeRestorePowerCut(t *testing.T) {
	c := newRestoreCase(t)
	for n := 1; ; n++ {
		sim, o := c.begin(t)
		sim.SetHook(func(op simfs.Op) error {
			if op.Kind == simfs.Rename && strings.Contains(op.NewPath, asideName) {
				return errRestoreDisk
			}
			return nil
		})
		if _, err := Restore(bg, o); !errors.Is(err, ErrRestoring) {
			t.Fatal(err)
		}
		sim.SetHook(nil)
		sim.CrashAt(sim.Ops() + n)
		if _, err := ResumeRestore(c.dir, sim); !sim.WasCut() {
			must(t, err)
			c.wantOldOrNew(t, c.dir)
			return
		}
		image := t.TempDir()
		must(t, sim.Image(image, rand.New(rand.NewPCG(uint64(n), 7))))
		if state := c.wantOldOrNew(t, filepath.Join(image, "data")); state == "old" {
			t.Errorf("operation %d: the old state came back", n)
		}
	}
}

// TestRestoreToDirPowerCut: into an empty directory there comes the whole store or none, and no
// server begins an empty one where a restore was cut off.
func TestRestoreToDirPowerCut(t *testing.T) {
	c := newRestoreCase(t)
	for n := 1; ; n++ {
		root := t.TempDir()
		sim, err := simfs.New(root)
		must(t, err)
		o := RestoreOptions{Dir: filepath.Join(root, "data"), Source: c.snapshot, FS: sim, Empty: true}
		sim.CrashAt(n)
		if _, err := Restore(bg, o); !sim.WasCut() {
			must(t, err)
			return
		}
		for seed := range uint64(3) {
			image := t.TempDir()
			must(t, sim.Image(image, rand.New(rand.NewPCG(uint64(n), seed))))
			dir := filepath.Join(image, "data")
			names, _ := vfs.OS.List(dir)
			if slices.Contains(names, RestoreJournal) {
				_, err := ResumeRestore(dir, nil)
				must(t, err)
			} else if !slices.Contains(names, treeName) {
				if _, err := Open(smallStore(dir)); slices.Contains(names, stagingName) && !errors.Is(err, ErrForeign) {
					t.Errorf("operation %d: a start: %v", n, err)
				}
				_ = os.Remove(filepath.Join(dir, vfs.LockName))
				if !slices.Contains(names, stagingName) {
					must(t, os.RemoveAll(dir))
				}
				_, err := Restore(bg, RestoreOptions{Dir: dir, Source: c.snapshot, Empty: true})
				must(t, err)
			}
			s, err := Open(smallStore(dir))
			must(t, err)
			wantState(t, s, c.after)
			must(t, s.Close())
		}
	}
}

// TestRestoreDiskFull: there is no room for the copy; the message says how much is needed.
func TestRestoreDiskFull(t *testing.T) {
	c := newRestoreCase(t)
	sim, o := c.begin(t)
	sim.SetFree(100_000)
	_, err := Restore(bg, o)
	if !vfs.IsNoSpace(err) || !strings.Contains(err.Error(), "MiB") || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("got %v", err)
	}
	if state := c.wantOldOrNew(t, c.dir); state != "old" {
		t.Errorf("the state is %s", state)
	}
}

// TestRestoreWithoutRights: who may not write gets told, and nothing is touched.
func TestRestoreWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
	c := newRestoreCase(t)
	_, o := c.begin(t)
	o.FS = nil
	readOnly(t, c.dir)
	before := listing(t, c.dir)
	if _, err := Restore(bg, o); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
	if after := listing(t, c.dir); !slices.Equal(before, after) {
		t.Error("the directory was changed")
	}
}

// TestRestoreGivesToTheOwner: what root restores can be used by the server's user.
func TestRestoreGivesToTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	c := newRestoreCase(t)
	_, o := c.begin(t)
	o.FS = nil
	const user, group = 12345, 12346
	must(t, filepath.WalkDir(c.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, group))
	}))
	must(t, os.Remove(filepath.Join(c.dir, vfs.LockName)))
	_, err := Restore(bg, o)
	must(t, err)
	must(t, filepath.WalkDir(c.dir, func(path string, _ os.DirEntry, err error) error {
		must(t, err)
		uid, gid, err := vfs.Owner(path)
		if err != nil || uid != user || gid != group {
			t.Errorf("%s belongs to %d:%d, %v", path, uid, gid, err)
		}
		return nil
	}))
}
