package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/auth"
	"github.com/tarn-kv/tarn/store/vfs"
)

// restoreInto restores a directory and opens the store in it.
func restoreInto(t testing.TB, o RestoreOptions) (RestoreReport, *Store) {
	t.Helper()
	r, err := Restore(bg, o)
	must(t, err)
	c, err := Check(bg, o.Dir)
	if err != nil || len(c.Findings)+len(c.Notes) > 0 || c.Revision != r.Revision {
		t.Fatalf("after the restore: %v, %+v", err, c)
	}
	return r, openStore(t, Options{Dir: o.Dir, ExpectID: r.StoreID})
}

func wantState(t testing.TB, s *Store, want string) {
	t.Helper()
	_, kvs, err := read(s, &RangeRequest{KeyRange: everything})
	must(t, err)
	if got := show(kvs); got != want {
		t.Errorf("the store has %s\ninstead of %s", got, want)
	}
}

func contentOf(t testing.TB, s *Store) string {
	t.Helper()
	_, kvs, err := read(s, &RangeRequest{KeyRange: everything})
	must(t, err)
	return show(kvs)
}

// TestRestore: the restored store has what the snapshot had, at a revision above all that was seen, and
// watches from old revisions are cancelled (DSK-17). The old state is kept.
func TestRestore(t *testing.T) {
	for seed := range uint64(2) {
		s := busyStore(t, seed)
		want, id := contentOf(t, s), s.ID()
		snapshot := copyTree(t, s.opts.Dir)
		at := s.Revision()
		for i := range 50 {
			put(t, s, fmt.Sprint("ghost", i), "x")
		}
		old, term := contentOf(t, s), s.Term()
		seen := s.Revision()
		must(t, s.Close())
		r, restored := restoreInto(t, RestoreOptions{Dir: s.opts.Dir, Source: snapshot, Snapshot: "tarn-test"})
		if r.OldRevision != seen || r.SnapshotRevision != at || r.Revision != seen+advanceKnown || r.StoreID != id || restored.Revision() != r.Revision {
			t.Errorf("%+v, revision %d; seen %d", r, restored.Revision(), seen)
		}
		wantState(t, restored, want)
		if restored.Term() <= term {
			t.Errorf("term %d after %d", restored.Term(), term)
		}
		if info, ok := restored.LeaseTimeToLive(7, true); !ok || info.Granted != 600 || info.TTL < 590 {
			t.Errorf("lease: %+v, %v", info, ok)
		}
		for _, from := range []int64{1, at, seen + 1, r.Revision - 1} {
			if compacted := watchCancelledAt(t, restored, from); compacted != r.Revision {
				t.Errorf("a watch from %d: cancelled with %d instead of %d", from, compacted, r.Revision)
			}
		}
		if next := put(t, restored, "after", "x"); next != r.Revision+1 {
			t.Errorf("the next revision is %d after %d", next, r.Revision)
		}
		must(t, restored.Close())
		aside := openStore(t, Options{Dir: r.Aside})
		wantState(t, aside, old)
	}
}

// watchCancelledAt starts a watch in the past and returns the compact revision with which it is cancelled.
func watchCancelledAt(t testing.TB, s *Store, from int64) int64 {
	t.Helper()
	ready := make(chan struct{}, 1)
	w := s.NewWatchStream(func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	defer w.Close()
	_, err := w.Create(WatchRequest{KeyRange: everything, Start: from})
	must(t, err)
	for {
		m, ok, err := w.Next()
		must(t, err)
		switch {
		case !ok:
			<-ready
		case m.Kind == WatchCanceled:
			return m.CompactRevision
		}
	}
}

// TestRestoreAgain: each restore moves the revision on, and the marks that they leave add up.
func TestRestoreAgain(t *testing.T) {
	s := busyStore(t, 9)
	want := contentOf(t, s)
	snapshots := []string{copyTree(t, s.opts.Dir)}
	must(t, s.Close())
	last := s.Revision()
	for i := range 4 {
		r, restored := restoreInto(t, RestoreOptions{Dir: s.opts.Dir, Source: snapshots[i/2], Time: time.Unix(1, 0)})
		if r.Revision <= last {
			t.Fatalf("restore %d: revision %d after %d", i, r.Revision, last)
		}
		wantState(t, restored, want)
		put(t, restored, "k", fmt.Sprint(i))
		_, err := restored.Compact(bg, restored.Revision(), true)
		must(t, err)
		last = restored.Revision()
		snapshots = append(snapshots, copyTree(t, s.opts.Dir))
		if i == 1 {
			want = contentOf(t, restored) // the next ones restore what was restored
			snapshots[1] = snapshots[len(snapshots)-1]
		}
		must(t, restored.Close())
	}
	if names, err := filepath.Glob(filepath.Join(s.opts.Dir, asideName+"*")); err != nil || len(names) != 4 {
		t.Errorf("kept: %q, %v", names, err)
	}
}

// TestRestoreNewer: a snapshot from after the present state, as after a wrong restore.
func TestRestoreNewer(t *testing.T) {
	s := busyStore(t, 3)
	early := copyTree(t, s.opts.Dir)
	put(t, s, "new", "x")
	late, want := copyTree(t, s.opts.Dir), contentOf(t, s)
	rev := s.Revision()
	dir := copyTree(t, early)
	r, restored := restoreInto(t, RestoreOptions{Dir: dir, Source: late, Known: rev + 10})
	if r.Revision != rev+10+advanceKnown || r.OldRevision >= r.SnapshotRevision {
		t.Errorf("%+v", r)
	}
	wantState(t, restored, want)
}

// TestRestoreOverDamage: what can not be read is kept aside as it is.
func TestRestoreOverDamage(t *testing.T) {
	for _, harm := range []func(dir string) error{
		func(dir string) error { return os.Truncate(filepath.Join(dir, treeName), 9_000) },
		func(dir string) error { return os.Remove(filepath.Join(dir, treeName)) },
		func(dir string) error { return os.RemoveAll(filepath.Join(dir, walName)) },
	} {
		s := busyStore(t, 3)
		snapshot, want := copyTree(t, s.opts.Dir), contentOf(t, s)
		dir := copyTree(t, s.opts.Dir)
		must(t, harm(dir))
		r, restored := restoreInto(t, RestoreOptions{Dir: dir, Source: snapshot, Time: advanceSince})
		if r.OldRevision != 0 || r.OldProblem == "" || r.Revision != s.Revision()+advanceUnknown || r.Aside == "" {
			t.Errorf("%+v", r)
		}
		wantState(t, restored, want)
	}
}

// TestRestoreToDir: into an empty or a new directory, also as it was.
func TestRestoreToDir(t *testing.T) {
	s := busyStore(t, 5)
	snapshot, want := copyTree(t, s.opts.Dir), contentOf(t, s)
	r, restored := restoreInto(t, RestoreOptions{Dir: filepath.Join(t.TempDir(), "a", "b"), Source: snapshot, Empty: true, Time: advanceSince})
	if r.Revision != s.Revision()+advanceUnknown || r.Aside != "" {
		t.Errorf("%+v", r)
	}
	wantState(t, restored, want)

	same := t.TempDir()
	r, err := Restore(bg, RestoreOptions{Dir: same, Source: snapshot, Empty: true, Advance: -1})
	must(t, err)
	v, w := openTestView(t, same), openTestView(t, copyTree(t, snapshot))
	got, err := v.HashKV(bg, 0)
	must(t, err)
	if wanted, err := w.HashKV(bg, 0); err != nil || got != wanted || r.Revision != s.Revision() {
		t.Errorf("hash %+v instead of %+v, %v", got, wanted, err)
	}
}

// TestRestoreKeepsUsers: users and roles are those of the snapshot, and tokens from before do not fit.
func TestRestoreKeepsUsers(t *testing.T) {
	s := testStore(t)
	must(t, s.ChangeAuth(bg, func(st *auth.State) (*auth.Update, error) { return st.AddUser("root", nil, true) }))
	before := s.Auth().Revision()
	snapshot := copyTree(t, s.opts.Dir)
	for i := range 3 {
		must(t, s.ChangeAuth(bg, func(st *auth.State) (*auth.Update, error) { return st.AddUser(fmt.Sprint("u", i), nil, true) }))
	}
	newest := s.Auth().Revision()
	must(t, s.Close())
	_, restored := restoreInto(t, RestoreOptions{Dir: s.opts.Dir, Source: snapshot})
	if users := restored.Auth().Users(); !slices.Equal(users, []string{"root"}) {
		t.Errorf("users %q", users)
	}
	if rev := restored.Auth().Revision(); rev <= newest || newest <= before {
		t.Errorf("revision of users %d after %d", rev, newest)
	}
}

func TestRestoreRefuses(t *testing.T) {
	s := busyStore(t, 2)
	snapshot := copyTree(t, s.opts.Dir)
	damaged := copyTree(t, snapshot)
	must(t, os.Truncate(filepath.Join(damaged, treeName), 9_000))
	if c, err := Check(bg, damaged); err != nil || len(c.Findings) == 0 {
		t.Fatalf("%v: the damage is not seen", err)
	}
	other := busyStore(t, 3)
	otherDir := copyTree(t, other.opts.Dir)
	full := t.TempDir()
	must(t, os.WriteFile(filepath.Join(full, "notes"), nil, 0o600))
	etcd := t.TempDir()
	must(t, os.Mkdir(filepath.Join(etcd, "member"), 0o700))
	locked := copyTree(t, snapshot)
	lock, err := vfs.Lock(locked)
	must(t, err)
	defer lock.Close()
	cancelled, cancel := context.WithCancel(bg)
	cancel()
	for what, c := range map[string]struct {
		ctx  context.Context
		o    RestoreOptions
		want error
		text string
	}{
		"server running":        {bg, RestoreOptions{Dir: s.opts.Dir, Source: snapshot}, ErrInUse, "pid"},
		"snapshot damaged":      {bg, RestoreOptions{Dir: otherDir, Source: damaged, OtherStore: true}, ErrSnapshot, "damaged"},
		"no snapshot":           {bg, RestoreOptions{Dir: otherDir, Source: t.TempDir()}, ErrSnapshot, "no store"},
		"snapshot in use":       {bg, RestoreOptions{Dir: otherDir, Source: locked}, ErrInUse, "pid"},
		"another store":         {bg, RestoreOptions{Dir: otherDir, Source: snapshot}, ErrRestoreTarget, other.ID()},
		"not empty":             {bg, RestoreOptions{Dir: full, Source: snapshot, Empty: true}, ErrRestoreTarget, "notes"},
		"etcd's directory":      {bg, RestoreOptions{Dir: etcd, Source: snapshot}, ErrRestoreTarget, "etcd"},
		"revisions run out":     {bg, RestoreOptions{Dir: otherDir, Source: snapshot, OtherStore: true, Advance: 1<<62 - 1}, ErrRestoreTarget, "run out"},
		"cancelled":             {cancelled, RestoreOptions{Dir: otherDir, Source: snapshot, OtherStore: true}, context.Canceled, ""},
		"advance by too little": {bg, RestoreOptions{Dir: otherDir, Source: snapshot, OtherStore: true, Advance: 1}, nil, "at least by 2"},
	} {
		before := filesIn(t, c.o.Dir)
		_, err := Restore(c.ctx, c.o)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", what, err)
		}
		if after := filesIn(t, c.o.Dir); !slices.Equal(before, after) {
			t.Errorf("%s: the directory was changed", what)
		}
	}
	missing := filepath.Join(t.TempDir(), "new")
	if _, err := Restore(bg, RestoreOptions{Dir: missing, Source: damaged, Empty: true}); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a directory was made for a damaged snapshot")
	}
}

// filesIn are the names in a directory and what is in the files, but for the lock.
func filesIn(t testing.TB, dir string) (list []string) {
	t.Helper()
	for _, line := range listing(t, dir) {
		fields := strings.SplitN(line, " ", 2)
		if filepath.Base(fields[0]) == vfs.LockName {
			continue
		}
		list = append(list, fields[0]+" "+line[strings.LastIndex(line, " "):])
	}
	return list
}
