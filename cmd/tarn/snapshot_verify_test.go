package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/zfs"
)

func openSource(t *testing.T, dir string, flags []string) zfs.Snapshots {
	t.Helper()
	o := defaultSourceOptions()
	o.dataDir, o.dirGiven = dir, true
	for _, f := range flags {
		if name, ok := strings.CutPrefix(f, "--dataset="); ok {
			o.dataset = name
		}
		o.copies = o.copies || f == "--copies"
	}
	from, err := o.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return from
}

// TestSnapshotVerify: a snapshot of a running server is proved good, with the server's hash; the result
// is recorded, and a later one that differs is damage.
func TestSnapshotVerify(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		s := serveDir(t, dir, "")
		if err := put(t, s.client(t), "in the log", "x"); err != nil {
			t.Fatal(err)
		}
		first := createSnapshot(t, flags, "--endpoint="+s.url)
		hash, err := etcdserverpb.NewMaintenanceClient(s.client(t)).HashKV(t.Context(), &etcdserverpb.HashKVRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := put(t, s.client(t), "later", "x"); err != nil {
			t.Fatal(err)
		}
		second := createSnapshot(t, flags, "--endpoint="+s.url)
		out, errs := snapshotCommand(t, 0, flags, "verify", first)
		want := fmt.Sprintf("OK           %s: revision 7, 6 keys, hash %08x (etcdctl prints %d)", first, hash.Hash, hash.Hash)
		if !strings.HasPrefix(out, want) || errs != "" {
			t.Errorf("%s%s\ninstead of %s", out, errs, want)
		}
		from := openSource(t, dir, flags)
		snaps, err := from.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v := snaps[0].Verified; v == nil || v.Revision != 7 || v.Hash != hash.Hash || snaps[1].Verified != nil {
			t.Errorf("recorded: %+v, %+v", v, snaps[1].Verified)
		}
		out, _ = snapshotCommand(t, 0, flags, "verify", "--newest", "-o=json")
		var v struct {
			Name     string
			OK       bool
			Revision int64
			Keys     int64
			Recorded bool
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil || v.Name != second || !v.OK || v.Revision != 8 || v.Keys != 7 || !v.Recorded {
			t.Errorf("%+v, %v from %s", v, err, out)
		}
		if out, _ := snapshotCommand(t, 0, flags, "verify", "--all"); strings.Count(out, "OK ") != 2 || strings.Index(out, first) < strings.Index(out, second) {
			t.Error(out)
		}

		lies := map[string][2]string{
			"acknowledged writes are missing": {zfs.PropRevision, "9"},
			"was made of store":               {zfs.PropStoreID, strings.Repeat("ab", 16)},
			"when it was verified on":         {zfs.PropVerified, "2026-01-02T03:04:05Z 7 00000001"},
		}
		for text, p := range lies {
			truth := map[string]string{zfs.PropRevision: "7", zfs.PropStoreID: snaps[0].StoreID, zfs.PropVerified: snaps[0].Verified.String()}
			if err := from.SetProperty(t.Context(), first, p[0], p[1]); err != nil {
				t.Fatal(err)
			}
			if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", "--all"); !strings.Contains(out, "DAMAGED      "+first) || !strings.Contains(out, text) || !strings.Contains(out, "OK           "+second) {
				t.Errorf("%s: %s", text, out)
			}
			if err := from.SetProperty(t.Context(), first, p[0], truth[p[0]]); err != nil {
				t.Fatal(err)
			}
		}

		path, cleanup, err := from.Open(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		defer cleanup()
		if err := os.Truncate(filepath.Join(path, treeFile), 9000); err != nil {
			t.Fatal(err)
		}
		if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", second, first); !strings.Contains(out, "DAMAGED      "+second) || !strings.Contains(out, "OK           "+first) {
			t.Error(out)
		}
		s.end(t)
		before := filesIn(t, dir)
		restore(t, exitRestoreSnapshot, flags, second)
		if filesIn(t, dir) != before {
			t.Error("the restore of a damaged snapshot has changed the data directory")
		}
		if err := os.Remove(filepath.Join(path, treeFile)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(path, "wal")); err != nil {
			t.Fatal(err)
		}
		if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", second); !strings.Contains(out, "DAMAGED      "+second) {
			t.Error(out)
		}
		snapshotCommand(t, exitNoSnapshot, flags, "verify", "nothing")
		snapshotCommand(t, exitUsage, flags, "verify")
		snapshotCommand(t, exitUsage, flags, "verify", "--all", first)
	})
}

func TestSnapshotDiff(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		s := serveDir(t, dir, "")
		c := s.client(t)
		kv := etcdserverpb.NewKVClient(c)
		set := func(key string) {
			t.Helper()
			if err := put(t, c, key, "value of "+key); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(key string) {
			t.Helper()
			if _, err := kv.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte(key)}); err != nil {
				t.Fatal(err)
			}
		}
		set("loose")
		set("/registry/secrets/default/db")
		old := createSnapshot(t, flags, "evening", "--endpoint="+s.url)
		set("/registry/secrets/default/new")
		remove("/registry/secrets/default/db")
		set("/registry/pods/default/p0")
		remove("/registry/pods/default/p1")
		set("/registry/pods/default/p1")
		set("/registry/services/specs/kube-system/dns")
		set("/registry/leases/kube-system/scheduler")
		set("/registry/leases/kube-system/manager")
		remove("loose")
		now := createSnapshot(t, flags, "morning", "--endpoint="+s.url)
		out, errs := snapshotCommand(t, 0, flags, "diff", "evening", "morning")
		want := `
pods
  ~ default/p0 (version 1 → 2)
  ! default/p1

secrets
  - default/db
  + default/new

services/specs
  + kube-system/dns

other keys
  - loose

not listed without --all: leases 2

4 added, 2 removed, 1 changed, 1 removed and made again
`
		lines := strings.SplitN(out, "\n", 3)
		if !strings.HasPrefix(lines[0], "from "+old+", revision 8, of ") || !strings.HasPrefix(lines[1], "to   "+now+", revision 17, of ") || lines[2] != want || errs != "" {
			t.Errorf("%s%s", out, errs)
		}
		if out, _ := snapshotCommand(t, 0, flags, "diff", now, now); !strings.HasSuffix(out, "\nno key differs\n") {
			t.Error(out)
		}
		out, _ = snapshotCommand(t, 0, flags, "diff", now, old, "--prefix=/registry/secrets/", "-o=json")
		var got []string
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var c change
			if err := d.Decode(&c); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(c.Change, c.Type, c.Namespace, c.Name, c.Key, c.Old != nil, c.New != nil))
		}
		if want := "[addedsecretsdefaultdb/registry/secrets/default/dbfalse true removedsecretsdefaultnew/registry/secrets/default/newtrue false]"; strings.ReplaceAll(fmt.Sprint(got), " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s\ninstead of %s", fmt.Sprint(got), want)
		}
		if out, _ := snapshotCommand(t, 0, flags, "diff", old, now, "--all"); !strings.Contains(out, "leases\n  + kube-system/manager\n  + kube-system/scheduler\n") || strings.Contains(out, "not listed") {
			t.Error(out)
		}
		_, errs = snapshotCommand(t, exitFailed, flags, "diff", old)
		if !strings.Contains(errs, "tarn snapshot create") {
			t.Error(errs)
		}
		set("after")
		s.end(t)
		if out, _ := snapshotCommand(t, 0, flags, "diff", now); !strings.Contains(out, "to   the data directory, revision 18") || !strings.Contains(out, "  + after") {
			t.Error(out)
		}
		snapshotCommand(t, exitNoSnapshot, flags, "diff", old, "nothing")
		snapshotCommand(t, exitUsage, flags, "diff")
	})
}

// TestSnapshotDiffAfterRestore: what a restore took back shows, and the revision that it left behind
// does not confuse it.
func TestSnapshotDiffAfterRestore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags)
	s := serveDir(t, dir, "")
	if err := put(t, s.client(t), "mistake", "x"); err != nil {
		t.Fatal(err)
	}
	s.end(t)
	wrong := createSnapshot(t, flags)
	restore(t, 0, flags, name)
	if out, _ := snapshotCommand(t, 0, flags, "diff", name); !strings.Contains(out, "no key differs") {
		t.Error(out)
	}
	if out, _ := snapshotCommand(t, 0, flags, "diff", wrong); !strings.Contains(out, "  - mistake") || !strings.Contains(out, "0 added, 1 removed, 0 changed") {
		t.Error(out)
	}
	other := filepath.Join(t.TempDir(), "other")
	newStore(t, other)
	restore(t, 0, flags, other, "--other-store")
	if out, _ := snapshotCommand(t, 0, flags, "diff", name); !strings.Contains(out, "two different stores") || !strings.Contains(out, "no key differs") {
		t.Error(out)
	}
}
