package zfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func copiesSubject(t *testing.T) subject {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	put(t, dir, "tree.db", "text")
	c, err := NewCopies(dir)
	if err != nil {
		t.Fatal(err)
	}
	return subject{
		Snapshots: copying{c}, dir: dir,
		foreign: func(t *testing.T, name string) {
			// A directory with a name of ours is ours, whatever is in it.
			if _, ours := ParseName(name); ours {
				put(t, c.Root(), name, "of somebody else")
			} else if err := os.MkdirAll(filepath.Join(c.Root(), name), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		all: func(t *testing.T) (names []string) {
			entries, err := os.ReadDir(c.Root())
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		},
	}
}

// copying makes copies of the files of a store.
type copying struct{ *Copies }

func (c copying) Create(ctx context.Context, opts CreateOptions) (Snapshot, error) {
	if opts.Fill == nil {
		opts.Files = []string{"tree.db", "wal"}
	}
	return c.Copies.Create(ctx, opts)
}

func TestCopies(t *testing.T) { testSnapshots(t, copiesSubject) }

func TestCopyIsThereAsAWhole(t *testing.T) {
	s := copiesSubject(t)
	for what, fail := range map[string]error{"disk full": syscall.ENOSPC, "quota": syscall.EDQUOT, "other": syscall.EIO} {
		_, err := s.Create(t.Context(), CreateOptions{Time: someTime, Fill: func(_ context.Context, dir string) error {
			put(t, dir, "tree.db", "half")
			return &os.PathError{Op: "write", Path: "tree.db", Err: fail}
		}})
		if err == nil || errors.Is(err, ErrNoSpace) != (what != "other") {
			t.Errorf("%s: %v", what, err)
		}
		if left := s.all(t); len(left) != 0 {
			t.Errorf("%s: left %v", what, left)
		}
	}
}

// What a killed process has left goes with the next snapshot, and what another
// one works on stays.
func TestLeftovers(t *testing.T) {
	s := copiesSubject(t)
	root := s.Snapshots.(copying).Root()
	put(t, filepath.Join(root, unfinishedPrefix+"dead"), "tree.db", "half")
	var during []string
	s.create(t, CreateOptions{Revision: 1, Fill: func(_ context.Context, dir string) error {
		put(t, dir, "tree.db", "outer")
		s.create(t, CreateOptions{Revision: 2})
		during = s.all(t)
		return nil
	}})
	if slices.Contains(during, unfinishedPrefix+"dead") || len(during) != 2 {
		t.Errorf("while one is made there are %v", during)
	}
	if got := s.list(t); len(got) != 2 || got[0].Revision != 2 || got[1].Revision != 1 {
		t.Errorf("list %+v", got)
	}
	if left := s.all(t); len(left) != 2 {
		t.Errorf("left %v", left)
	}
}

func TestCopyBeingRead(t *testing.T) {
	s := copiesSubject(t)
	name := s.create(t, CreateOptions{Revision: 1}).Name
	_, cleanup, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, cleanup2, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	cleanup2()
	if err := s.Destroy(t.Context(), name); !errors.Is(err, ErrBusy) {
		t.Errorf("destroying it: %v", err)
	}
	if err := cleanup(); err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context(), name); err != nil {
		t.Error(err)
	}
}

func TestCopyHoldsTheStoreAlone(t *testing.T) {
	s := copiesSubject(t)
	put(t, s.dir, "before-restore-1/tree.db", "old")
	put(t, s.dir, "LOCK", "pid 1")
	dir, cleanup, err := s.Open(t.Context(), s.create(t, CreateOptions{Revision: 1}).Name)
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if !slices.Equal(got, []string{recordName, "tree.db"}) {
		t.Errorf("the copy holds %v", got)
	}
}

func TestCopyOfNothing(t *testing.T) {
	c, err := NewCopies(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if snaps, err := c.List(t.Context()); err != nil || len(snaps) != 0 {
		t.Errorf("list %v, %v", snaps, err)
	}
	if _, err := c.Create(t.Context(), CreateOptions{Time: someTime}); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), c.Source()) {
		t.Errorf("create: %v", err)
	}
}
