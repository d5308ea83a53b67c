package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// copyTree copies a directory as it is now, as a snapshot of a running server is: no file is asked for.
func copyTree(t testing.TB, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	must(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// readOnly takes the right to write from all that is in a directory.
func readOnly(t testing.TB, dir string) {
	t.Helper()
	each := func(mode fs.FileMode) error {
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				return os.Chmod(path, mode|0o100)
			}
			return errors.Join(err, os.Chmod(path, mode))
		})
	}
	must(t, each(0o400))
	t.Cleanup(func() { _ = each(0o600) })
}

// listing is all that is in a directory, with times and contents.
func listing(t testing.TB, dir string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		list = append(list, fmt.Sprintf("%s %v %v %x", path, info.Mode(), info.ModTime(), content))
		return nil
	}))
	return list
}

// busyStore is a store with a random history: part in the tree, part in the log alone.
func busyStore(t testing.TB, seed uint64) *Store {
	t.Helper()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := openStore(t, Options{Dir: t.TempDir()})
	_, err := s.LeaseGrant(bg, 7, 600)
	must(t, err)
	for i := range 300 {
		key := fmt.Sprintf("/registry/pods/default/p%d", rnd.IntN(40))
		switch n := rnd.IntN(20); {
		case n == 0:
			del(t, s, single(key))
		case n == 1 && s.Revision() > 10:
			_, err := s.Compact(bg, s.Revision()-rnd.Int64N(5), true)
			if !errors.Is(err, ErrCompacted) {
				must(t, err)
			}
		case n == 2:
			putLease(t, s, key, "leased", 7)
		case n == 3 && i < 250:
			must(t, s.Checkpoint(bg))
		default:
			put(t, s, key, fmt.Sprintf("value %d", i))
		}
	}
	return s
}

// scanAll is what a view has at a revision, in the form of the API.
func scanAll(t testing.TB, v *View, rev int64) (kvs []*mvccpb.KeyValue) {
	t.Helper()
	must(t, v.Scan(bg, everything, rev, func(kv KeyValue) error {
		kvs = append(kvs, &mvccpb.KeyValue{
			Key: []byte(kv.Key), Value: slices.Clone(kv.Value), CreateRevision: kv.Create, ModRevision: kv.Rev.Main, Version: kv.Version, Lease: kv.Lease,
		})
		return nil
	}))
	return kvs
}

func openTestView(t testing.TB, dir string) *View {
	t.Helper()
	v, err := OpenView(bg, dir)
	must(t, err)
	t.Cleanup(func() { _ = v.Close() })
	return v
}

// TestViewIsTheServersState: at each revision that can be read, a view of the files under a running
// server has what the server has, and the same hash; and nothing is written.
func TestViewIsTheServersState(t *testing.T) {
	for seed := range uint64(3) {
		s := busyStore(t, seed)
		dir := copyTree(t, s.opts.Dir)
		readOnly(t, dir)
		before := listing(t, dir)
		v := openTestView(t, dir)
		if v.Revision() != s.Revision() || v.CompactRevision() != s.Status().CompactRevision || v.ID() != s.ID() || v.Keys() != s.Status().Keys || v.Leases() != 1 {
			t.Errorf("seed %d: revision %d, compacted %d, store %s, %d keys; the server is at %+v", seed, v.Revision(), v.CompactRevision(), v.ID(), v.Keys(), s.Status())
		}
		again, err := Open(Options{Dir: copyTree(t, dir)})
		must(t, err)
		for rev := max(0, s.Status().CompactRevision); rev <= s.Revision(); rev++ {
			_, want, err := read(s, &RangeRequest{KeyRange: everything, Revision: rev})
			must(t, err)
			if got := scanAll(t, v, rev); show(got) != show(want) {
				t.Fatalf("seed %d, revision %d: %s\ninstead of %s", seed, rev, show(got), show(want))
			}
			got, err := v.HashKV(bg, rev)
			must(t, err)
			afterStart, err := again.HashKV(bg, rev)
			must(t, err)
			if got != afterStart {
				t.Errorf("seed %d, revision %d: hash %+v instead of %+v", seed, rev, got, afterStart)
			}
			if running, err := s.HashKV(bg, rev); err != nil || rev != s.Status().CompactRevision && running != got {
				t.Errorf("seed %d, revision %d: hash %+v instead of %+v, %v", seed, rev, got, running, err)
			}
		}
		must(t, again.Close())
		must(t, v.Close())
		if after := listing(t, dir); !slices.Equal(before, after) {
			t.Errorf("seed %d: the directory was changed: %d entries instead of %d", seed, len(after), len(before))
		}
	}
}

func TestViewItemsAndValues(t *testing.T) {
	s := testStore(t)
	for i := range 3 * viewStep {
		put(t, s, fmt.Sprintf("k%04d", i), fmt.Sprint("v", i))
	}
	del(t, s, single("k0000"))
	v := openTestView(t, copyTree(t, s.opts.Dir))
	items, err := v.Items(everything, 0)
	must(t, err)
	n := 1
	for it := range items {
		value, err := v.Value(it)
		must(t, err)
		if it.Key != fmt.Sprintf("k%04d", n) || string(value) != fmt.Sprint("v", n) {
			t.Fatalf("item %d: %q = %q", n, it.Key, value)
		}
		n++
	}
	if n != 3*viewStep {
		t.Errorf("%d items", n)
	}
	for range items { // it ends when the caller does not want more
		break
	}
	if _, err := v.Items(everything, v.Revision()+1); !errors.Is(err, ErrFutureRev) {
		t.Errorf("a future revision: %v", err)
	}
	if _, ok := v.LeaseTTL(3); ok {
		t.Error("a lease that was never granted")
	}
	stop := errors.New("stop")
	if err := v.Scan(bg, everything, 0, func(KeyValue) error { return stop }); err != stop {
		t.Errorf("an error of the caller: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := v.Scan(ctx, everything, 0, func(KeyValue) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a scan that was cancelled: %v", err)
	}
}

func TestViewRefuses(t *testing.T) {
	s := busyStore(t, 1)
	if _, err := OpenView(bg, s.opts.Dir); !errors.Is(err, ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if _, err := OpenView(bg, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
	whole := copyTree(t, s.opts.Dir)
	for what, harm := range map[string]func(dir string){
		"no log":     func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, walName))) },
		"no tree":    func(dir string) { must(t, os.Remove(filepath.Join(dir, treeName))) },
		"a cut tree": func(dir string) { must(t, os.Truncate(filepath.Join(dir, treeName), 9_000)) },
	} {
		dir := copyTree(t, whole)
		harm(dir)
		if _, err := OpenView(bg, dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
