package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs"
)

// copiesWorld is a data directory with a store and two file copies of it.
func copiesWorld(t *testing.T) (dir string, flags []string, first, second string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags = []string{"--data-dir=" + dir, "--copies"}
	return dir, flags, createSnapshot(t, flags), createSnapshot(t, flags)
}

// TestSnapshotWithDamagedDescription: it is told by each command that could take it for sound or for
// not there, it is removed by its name alone, and its files can be restored.
func TestSnapshotWithDamagedDescription(t *testing.T) {
	dir, flags, first, bad := copiesWorld(t)
	path := filepath.Join(dir+"-snapshots", bad)
	if err := os.WriteFile(filepath.Join(path, "snapshot.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if page, _ := snapshotCommand(t, 0, flags, "list"); !strings.Contains(page, bad) || !strings.Contains(page, "DAMAGED") || !strings.Contains(page, "damaged description") {
		t.Errorf("list prints %s", page)
	}
	if list := listJSON(t, flags); len(list.Snapshots) != 2 || list.Snapshots[0].Problem != "" || list.Snapshots[1].Problem == "" {
		t.Errorf("list is %+v", list)
	}
	for _, name := range []string{bad, "newest"} {
		if page, _ := snapshotCommand(t, 0, flags, "show", name); !strings.Contains(page, "DAMAGED   its snapshot.json can not be read") {
			t.Errorf("show %s prints %s", name, page)
		}
	}
	if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", "--all"); !strings.Contains(out, "DAMAGED      "+bad) || !strings.Contains(out, "OK           "+first) {
		t.Errorf("verify --all prints %s", out)
	}
	if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", "--newest"); !strings.Contains(out, "DAMAGED      "+bad) {
		t.Errorf("verify --newest prints %s", out)
	}
	snapshotCommand(t, exitRestoreSnapshot, flags, "diff", bad)
	before := filesIn(t, dir)
	if _, errs := restore(t, exitRestoreSnapshot, flags, "newest"); !strings.Contains(errs, bad) || !strings.Contains(errs, "tarn restore "+path) {
		t.Errorf("restore newest: %s", errs)
	}
	if filesIn(t, dir) != before {
		t.Error("the restore that was refused has changed the data directory")
	}
	if out, _ := snapshotCommand(t, 0, flags, "prune", "--keep-last=1"); !strings.Contains(out, "destroyed 0, kept 2") {
		t.Errorf("prune prints %s", out)
	}
	if _, errs := snapshotCommand(t, exitFailed, flags, "destroy", "newest"); !strings.Contains(errs, bad) {
		t.Errorf("destroy newest: %s", errs)
	}
	restore(t, 0, flags, path)
	snapshotCommand(t, 0, flags, "destroy", "--dry-run", dir+"@"+bad)
	snapshotCommand(t, 0, flags, "destroy", bad)
	if list := listJSON(t, flags); len(list.Snapshots) != 1 || list.Snapshots[0].Name != first {
		t.Errorf("list is %+v", list)
	}
}

// TestSnapshotWithoutStore: what is left of a copy is told as damaged by each command, down to an empty
// directory, and can be removed.
func TestSnapshotWithoutStore(t *testing.T) {
	dir, flags, _, bad := copiesWorld(t)
	path := filepath.Join(dir+"-snapshots", bad)
	lose := func(name string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	lose(treeFile)
	lose("wal")
	for _, args := range [][]string{{"newest", "--dry-run"}, {path, "--dry-run"}, {"newest"}, {"newest", "--key=a"}} {
		if _, errs := restore(t, exitRestoreSnapshot, flags, args...); !strings.Contains(errs, "damaged") && args[1] != "--key=a" || strings.Count(errs, "use another one") != 1 {
			t.Errorf("restore %q: %s", args, errs)
		}
	}
	if _, errs := snapshotCommand(t, exitRestoreSnapshot, flags, "diff", bad); !strings.Contains(errs, "use another one") {
		t.Errorf("diff: %s", errs)
	}
	lose("snapshot.json")
	if page, _ := snapshotCommand(t, 0, flags, "list"); !strings.Contains(page, bad) || !strings.Contains(page, "DAMAGED") {
		t.Errorf("list prints %s", page)
	}
	if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", bad); !strings.Contains(out, "it has no snapshot.json") {
		t.Errorf("verify prints %s", out)
	}
	snapshotCommand(t, 0, flags, "destroy", bad)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// TestSnapshotWithFlippedBit: a copy that was never verified is found to be damaged wherever a bit of it
// is flipped, also where no page of the tree is.
func TestSnapshotWithFlippedBit(t *testing.T) {
	dir, flags, first, second := copiesWorld(t)
	file := filepath.Join(dir+"-snapshots", second, treeFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Bytes behind the end of all pages are nothing that the tree looks at.
	if err := os.WriteFile(file, append(text, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", "--all", "-o=json")
	d := json.NewDecoder(strings.NewReader(out))
	for _, name := range []string{second, first} {
		var v struct {
			Name     string
			OK       bool
			Findings []string
		}
		if err := d.Decode(&v); err != nil || v.Name != name || v.OK != (name == first) {
			t.Errorf("%+v, %v in %s", v, err, out)
		}
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := snapshotCommand(t, exitSnapshotDamaged, flags, "verify", second); !strings.Contains(out, treeFile+" has other bytes") {
		t.Errorf("verify prints %s", out)
	}
}

func TestSnapshotLabelOfSeveral(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	first, second := createSnapshot(t, flags, "twice"), createSnapshot(t, flags, "twice")
	for _, verb := range []string{"show", "hold", "release", "destroy", "verify", "diff"} {
		if _, errs := snapshotCommand(t, exitUsage, flags, verb, "twice"); !strings.Contains(errs, first+", "+second+"; give the name of one") {
			t.Errorf("%s: %s", verb, errs)
		}
	}
	for _, label := range []string{"newest", first} {
		if _, errs := snapshotCommand(t, exitUsage, flags, "create", label); !strings.Contains(errs, "LABEL can not be") {
			t.Errorf("create %s: %s", label, errs)
		}
	}
	// An older version took it as a label.
	if err := openSource(t, dir, flags).SetProperty(t.Context(), first, zfs.PropLabel, "newest"); err != nil {
		t.Fatal(err)
	}
	if page, _ := snapshotCommand(t, 0, flags, "show", "newest"); !strings.Contains(page, second) {
		t.Errorf("show newest prints %s", page)
	}
}

func TestSnapshotsOfMissingDirectory(t *testing.T) {
	dir, flags, first, _ := copiesWorld(t)
	typo := []string{"--data-dir=" + dir + "x", "--copies"}
	for _, args := range [][]string{{"list"}, {"prune"}, {"verify", "--all"}, {"show", "newest"}} {
		if _, errs := snapshotCommand(t, exitNoSnapshot, typo, args...); !strings.Contains(errs, dir+"x does not exist") {
			t.Errorf("%q: %s", args, errs)
		}
	}
	// What was lost has snapshots all the same.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if list := listJSON(t, flags); len(list.Snapshots) != 2 || list.Snapshots[0].Name != first {
		t.Errorf("list is %+v", list)
	}
}

// TestPruneKeepNone: a rule that was given is given, whatever its number.
func TestPruneKeepNone(t *testing.T) {
	_, flags, first, second := copiesWorld(t)
	if out, _ := snapshotCommand(t, 0, flags, "prune", "--dry-run"); !strings.Contains(out, "would destroy 0") {
		t.Errorf("prune prints %s", out)
	}
	code, out, errs := tarn(t, []string{"TARN_KEEP_DAILY=0"}, append([]string{"snapshot", "prune", "--dry-run"}, flags...)...)
	if code != exitOK || !strings.Contains(out, "would destroy "+first) {
		t.Errorf("prune prints %s%s", out, errs)
	}
	if out, _ := snapshotCommand(t, 0, flags, "prune", "--keep-last=0"); !strings.Contains(out, "destroyed "+first) || !strings.Contains(out, "kept "+second) {
		t.Errorf("prune prints %s", out)
	}
}
