package migrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// records are all records of a tree, by raw key.
func records(t testing.TB, path string) map[string]string {
	t.Helper()
	tr, err := tree.Open(tree.Options{Path: path, ReadOnly: true})
	must(t, err)
	defer tr.Close()
	all := map[string]string{}
	v := tr.View()
	defer v.Close()
	must(t, v.Scan(tree.Revision{}, func(rev tree.Revision, dead bool, value []byte) bool {
		all[string(rev.AppendKey(nil, dead))] = string(value)
		return true
	}))
	return all
}

func TestImportKeepsEverything(t *testing.T) {
	b := testBatch()
	db := database(t, b, nil)
	path := writeSnapshot(t, withHash(db))
	before, err := os.ReadFile(path)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "new", "data")
	var steps []string
	r, err := ImportSnapshot(t.Context(), path, Options{Dir: dir, Progress: func(step string, done, total int64) {
		if done > total || done < 0 {
			t.Errorf("%s: %d of %d", step, done, total)
		}
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}})
	must(t, err)
	if want := []string{StepHash, StepCheck, StepCopy, StepVerify}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the snapshot was changed (%v)", err)
	}
	source := writeSnapshot(t, db)
	if got, want := records(t, filepath.Join(dir, treeName)), records(t, source); !reflect.DeepEqual(got, want) || int64(len(got)) != r.Records {
		t.Errorf("%d records in the store, %d in the source, %d reported", len(got), len(want), r.Records)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 { // and the lock
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	checked, err := store.CheckTree(t.Context(), source)
	must(t, err)
	got, err := store.Check(t.Context(), dir)
	must(t, err)
	if len(got.Findings) > 0 || got.Hash != checked.Hash || r.Hash != checked.Hash || r.Keys != checked.Keys || r.Revision != 150 || r.CompactRevision != 20 {
		t.Errorf("the store is %+v, reported as %+v, the source %+v", got, r, checked)
	}
	wantRest(t, filepath.Join(dir, treeName), b)
	wantServes(t, dir, path)
}

// wantRest compares what is not in bucket key.
func wantRest(t *testing.T, path string, b *tree.Batch) {
	t.Helper()
	tr, err := tree.Open(tree.Options{Path: path, ReadOnly: true})
	must(t, err)
	defer tr.Close()
	leases, err := tr.Leases()
	must(t, err)
	alarms, err := tr.Alarms()
	must(t, err)
	auth, err := tr.Auth()
	must(t, err)
	if !reflect.DeepEqual(leases, b.LeasePut) || !reflect.DeepEqual(alarms, b.AlarmPut) {
		t.Errorf("leases %+v, alarms %+v", leases, alarms)
	}
	if want := (tree.Auth{Enabled: true, Revision: 3, Users: b.AuthUsers, Roles: b.AuthRoles}); !reflect.DeepEqual(auth, want) {
		t.Errorf("users and roles are %+v, want %+v", auth, want)
	}
	meta, err := tr.Meta()
	must(t, err)
	if _, member, err := tr.Member(); err != nil || member || meta.Seq != 0 || meta.Term != 0 || meta.StoreID == (tree.StoreID{}) {
		t.Errorf("what names the old member is kept: %v, %+v, %v", member, meta, err)
	}
	if meta.ScheduledCompact != 20 || meta.FinishedCompact != 20 {
		t.Errorf("compactions: %+v", meta)
	}
}

// wantServes starts the store twice, and compares the hash at each revision with that of a
// store that uses the source as it is.
func wantServes(t *testing.T, dir, snapshot string) {
	t.Helper()
	other := t.TempDir()
	content, err := os.ReadFile(snapshot)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(other, treeName), content, 0o600))
	want, err := store.Open(store.Options{Dir: other, AllowMissingLog: true})
	must(t, err)
	defer want.Close()
	for range 2 {
		s, err := store.Open(store.Options{Dir: dir})
		must(t, err)
		for rev := int64(20); rev <= 150; rev++ {
			a, err := s.HashKV(t.Context(), rev)
			must(t, err)
			b, err := want.HashKV(t.Context(), rev)
			must(t, err)
			if a.Hash != b.Hash || a.CompactRevision != b.CompactRevision {
				t.Fatalf("revision %d: %+v, want %+v", rev, a, b)
			}
		}
		if !reflect.DeepEqual(s.Leases(), want.Leases()) {
			t.Errorf("leases %v, want %v", s.Leases(), want.Leases())
		}
		must(t, s.Close())
	}
}

func TestImportVariants(t *testing.T) {
	for name, c := range map[string]struct {
		change func(tx *bolt.Tx) error
		want   Report
	}{
		"only key and meta": {func(tx *bolt.Tx) error {
			for _, b := range []string{"lease", "alarm", "members", "members_removed", "cluster", "auth", "authUsers", "authRoles", "tarn"} {
				must(t, tx.DeleteBucket([]byte(b)))
			}
			return tx.Bucket([]byte("meta")).Delete([]byte("storageVersion"))
		}, Report{Revision: 150, CompactRevision: 20}},
		"DSK-17 bumped": {func(tx *bolt.Tx) error {
			rev := tree.Revision{Main: 1000}.AppendKey(nil, false)
			must(t, tx.Bucket([]byte("key")).Put(rev, []byte{}))
			return tx.Bucket([]byte("meta")).Put([]byte("scheduledCompactRev"), rev)
		}, Report{Revision: 1000, CompactRevision: 1000}},
		"DSK-4 an unknown bucket": {func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("mine"))
			must(t, err)
			return b.Put([]byte("k"), []byte("v"))
		}, Report{Revision: 150, CompactRevision: 20, LeftOut: []string{`"mine"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			path := writeSnapshot(t, withHash(database(t, testBatch(), c.change)))
			dry, err := ImportSnapshot(t.Context(), path, Options{DryRun: true})
			must(t, err)
			r, err := ImportSnapshot(t.Context(), path, Options{Dir: dir})
			must(t, err)
			if dry.StoreID != "" || len(r.StoreID) != 32 {
				t.Errorf("the store's ID is %q, in a dry run %q", r.StoreID, dry.StoreID)
			}
			if dry.StoreID = r.StoreID; !reflect.DeepEqual(r, dry) {
				t.Errorf("imported %+v, and a dry run said %+v", r, dry)
			}
			if r.Revision != c.want.Revision || r.CompactRevision != c.want.CompactRevision || !slices.Equal(r.LeftOut, c.want.LeftOut) {
				t.Errorf("got %+v, want %+v", r, c.want)
			}
			s, err := store.Open(store.Options{Dir: dir, ExpectID: r.StoreID})
			must(t, err)
			defer s.Close()
			if s.Revision() != c.want.Revision {
				t.Errorf("the store has revision %d", s.Revision())
			}
		})
	}
}

// pageHeader is what is before the content of a page.
const pageHeader = 16

func changedIn(content []byte, at int) []byte {
	b := bytes.Clone(content)
	b[at] ^= 1
	return b
}

func TestImportRefusesSource(t *testing.T) {
	db := database(t, testBatch(), nil)
	good := withHash(db)
	changed := func(at int) []byte { return changedIn(good, at) }
	newer := database(t, testBatch(), func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("storageVersion"), []byte("3.8.0"))
	})
	badRecord := database(t, testBatch(), func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("key")).Put([]byte("x"), nil)
	})
	foreign := func() []byte {
		return database(t, testBatch(), func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("key")) })
	}
	for name, c := range map[string]struct {
		content []byte
		skip    bool
		want    string
	}{
		"empty":                {nil, false, "empty"},
		"empty, skip":          {nil, true, "empty"},
		"text":                 {[]byte(strings.Repeat("text\n", 1000)), false, "meta pages"},
		"text, skip":           {[]byte(strings.Repeat("text\n", 1000)), true, "meta pages"},
		"without hash":         {db, false, "--skip-hash-check"},
		"a changed byte":       {changed(len(db) / 2), false, "not that of its content"},
		"a changed hash":       {changed(len(db) + 3), false, "not that of its content"},
		"cut off":              {good[:len(good)-100], false, "which no database has"},
		"cut off at a page":    {good[:len(db)/2/testPage*testPage], true, "cut off"},
		"a meta page, skip":    {changedIn(db, pageHeader+3), true, "meta page 0"},
		"the other one, skip":  {changedIn(db, testPage+pageHeader+60), true, "meta page 1"},
		"a log":                {make([]byte, 64<<10), false, "is no database"},
		"a damaged page, skip": {changed(5 * testPage), true, "damaged"},
		"newer version":        {withHash(newer), false, "3.8.0"},
		"bad record":           {withHash(badRecord), false, "not a revision"},
		"foreign":              {withHash(foreign()), false, "not an etcd database"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			path := writeSnapshot(t, c.content)
			for _, dry := range []bool{false, true} {
				_, err := ImportSnapshot(t.Context(), path, Options{Dir: dir, SkipHashCheck: c.skip, DryRun: dry})
				if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				wantNothing(t, dir)
			}
		})
	}
	t.Run("in use", func(t *testing.T) {
		path := writeSnapshot(t, db)
		tr, err := tree.Open(tree.Options{Path: path})
		must(t, err)
		defer tr.Close()
		if _, err := ImportSnapshot(t.Context(), path, Options{DryRun: true, SkipHashCheck: true}); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		if _, err := ImportSnapshot(t.Context(), "/does/not/exist", Options{DryRun: true}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestImportRefusesTarget(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	for _, name := range []string{treeName, walName, etcdName} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		if _, err := ImportSnapshot(t.Context(), path, Options{Dir: dir}); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: the directory holds %v, %v", name, entries, err)
		}
	}
	dir := t.TempDir()
	lock, err := vfs.Lock(dir)
	must(t, err)
	defer lock.Close()
	if _, err := ImportSnapshot(t.Context(), path, Options{Dir: dir}); !errors.Is(err, ErrTarget) {
		t.Errorf("in use: got %v", err)
	}
}

func TestImportEndsWithContext(t *testing.T) {
	path := writeSnapshot(t, withHash(database(t, testBatch(), nil)))
	for _, at := range []string{StepHash, StepCheck, StepCopy, StepVerify} {
		dir := filepath.Join(t.TempDir(), "data")
		ctx, cancel := context.WithCancel(t.Context())
		_, err := ImportSnapshot(ctx, path, Options{Dir: dir, Progress: func(step string, _, _ int64) {
			if step == at {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", at, err)
		}
		wantNothing(t, dir)
	}
}
