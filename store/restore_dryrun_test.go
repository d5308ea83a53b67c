package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// TestRestoreDryRunMakesNothing: no directory and no lock file, and the same report as of the real run.
func TestRestoreDryRunMakesNothing(t *testing.T) {
	s := busyStore(t, 5)
	snapshot := copyTree(t, s.opts.Dir)
	parent := t.TempDir()
	empty := t.TempDir()
	for what, dir := range map[string]string{"missing": filepath.Join(parent, "a", "b"), "empty": empty} {
		o := RestoreOptions{Dir: dir, Source: snapshot, Time: advanceSince, DryRun: true}
		dry, err := Restore(bg, o)
		must(t, err)
		for _, d := range []string{parent, empty} {
			if names, err := os.ReadDir(d); err != nil || len(names) > 0 {
				t.Fatalf("%s: left %v, %v", what, names, err)
			}
		}
		o.DryRun = false
		o.Dir = filepath.Join(t.TempDir(), "real")
		if what == "empty" {
			o.Dir = t.TempDir()
		}
		dry.Exchanged = true
		if real, err := Restore(bg, o); err != nil || real != dry {
			t.Errorf("%s: %+v\ninstead of %+v, %v", what, real, dry, err)
		}
	}
	if _, err := Restore(bg, RestoreOptions{Dir: s.opts.Dir, Source: snapshot, DryRun: true}); !errors.Is(err, ErrInUse) {
		t.Errorf("with a server running: %v", err)
	}
}

// smallFS has almost no room.
type smallFS struct {
	vfs.FS
	fsType string
}

func (f smallFS) Usage(string) (vfs.Usage, error) {
	return vfs.Usage{Total: 1 << 30, Free: 10, Type: f.fsType}, nil
}

// TestRestoreWithoutRoom: the dry run and the real one refuse before they copy; where blocks may be shared it is
// only told.
func TestRestoreWithoutRoom(t *testing.T) {
	s := busyStore(t, 5)
	snapshot := copyTree(t, s.opts.Dir)
	dir := t.TempDir()
	shares, err := vfs.SharesBlocks(dir, filepath.Join(snapshot, treeName))
	if err != nil || shares {
		t.Skipf("copies share their blocks here: %v, %v", shares, err)
	}
	for _, dry := range []bool{true, false} {
		before := filesIn(t, dir)
		_, err := Restore(bg, RestoreOptions{Dir: dir, Source: snapshot, DryRun: dry, FS: smallFS{vfs.OS, "ext4"}})
		if !vfs.IsNoSpace(err) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("dry run %v: %v", dry, err)
		}
		if after := filesIn(t, dir); !slices.Equal(before, after) {
			t.Errorf("left %q", after)
		}
	}
	// The advice fits the place, and nothing is called copied.
	for _, o := range []RestoreOptions{
		{Dir: dir, FS: smallFS{vfs.OS, "ext4"}}, {Dir: filepath.Join(dir, "new"), Empty: true, FS: smallFS{vfs.OS, "tmpfs"}},
	} {
		o.Source = snapshot
		_, err := Restore(bg, o)
		if text := fmt.Sprint(err); strings.Contains(text, "zfs set") || strings.Contains(text, asideName) == o.Empty ||
			strings.Contains(text, "beside the present one") == o.Empty || strings.Contains(text, "copy ") {
			t.Errorf("to a new place %v: %s", o.Empty, text)
		}
	}
	if err := (&restorer{RestoreOptions: RestoreOptions{Dir: dir, FS: smallFS{vfs.OS, "zfs"}}}).explainNoSpace(syscall.ENOSPC); !strings.Contains(err.Error(), "zfs set refquota") {
		t.Error(err)
	}
	r, err := Restore(bg, RestoreOptions{Dir: dir, Source: snapshot, DryRun: true, FS: smallFS{vfs.OS, "zfs"}})
	if err != nil || r.Short <= 0 {
		t.Errorf("on ZFS: %+v, %v", r, err)
	}
}

// TestRestoreComparesWithRecord: what is recorded of a snapshot and does not fit is damage.
func TestRestoreComparesWithRecord(t *testing.T) {
	s := busyStore(t, 5)
	snapshot, dir := copyTree(t, s.opts.Dir), t.TempDir()
	o := RestoreOptions{Dir: dir, Source: snapshot, Compare: func(_ context.Context, r CheckReport) ([]string, error) {
		if r.Revision != s.Revision() || r.StoreID != s.ID() {
			t.Errorf("%+v", r)
		}
		return []string{"it was another one"}, nil
	}}
	if _, err := Restore(bg, o); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), "it was another one") {
		t.Error(err)
	}
	gone := errors.New("gone")
	o.Compare = func(context.Context, CheckReport) ([]string, error) { return nil, gone }
	if _, err := Restore(bg, o); !errors.Is(err, gone) || errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
}

// TestRestoreMissingDirOwner: what root makes for a missing directory belongs to whom the snapshot does.
func TestRestoreMissingDirOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const uid = 4321
	s := busyStore(t, 5)
	snapshot := copyTree(t, s.opts.Dir)
	must(t, os.Lchown(filepath.Join(snapshot, treeName), uid, uid))
	parent := t.TempDir()
	r, err := Restore(bg, RestoreOptions{Dir: filepath.Join(parent, "a", "b"), Source: snapshot})
	must(t, err)
	if !r.Made || r.UID != uid {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"a", "a/b", "a/b/" + treeName, "a/b/" + vfs.LockName} {
		if got, _, err := vfs.Owner(filepath.Join(parent, name)); err != nil || got != uid {
			t.Errorf("%s belongs to %d, %v", name, got, err)
		}
	}
}

// TestRestoreFromDirInUse: not the target is in use, and another target is no help.
func TestRestoreFromDirInUse(t *testing.T) {
	s := busyStore(t, 5)
	_, err := Restore(bg, RestoreOptions{Dir: filepath.Join(t.TempDir(), "to"), Source: s.opts.Dir, Empty: true})
	if !errors.Is(err, ErrInUse) || strings.Contains(err.Error(), "--to-dir") || !strings.Contains(err.Error(), "snapshot create") {
		t.Error(err)
	}
	_, err = Restore(bg, RestoreOptions{Dir: s.opts.Dir, Source: copyTree(t, s.opts.Dir)})
	if !errors.Is(err, ErrInUse) || strings.Count(err.Error(), "stop") != 2 || !strings.Contains(err.Error(), "stop the server first (systemctl stop tarn), or restore into another directory with --to-dir") {
		t.Error(err)
	}
}
