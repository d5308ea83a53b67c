package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

// world is a data directory on pretended ZFS, and the flags that name it.
type world struct {
	*fakezfs.World
	dataset, dir string
	flags        []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: fakezfs.New(t)}
	var mountpoint string
	w.dataset, mountpoint = w.Dataset("tarn")
	w.dir = filepath.Join(mountpoint, "store")
	w.flags = []string{"--dataset=" + w.dataset, "--data-dir=" + w.dir}
	return w
}

// newStore begins a store with some keys in a directory and stops it again.
func newStore(t *testing.T, dir string) (revision int64, id string) {
	t.Helper()
	o := testOptions(t)
	o.dataDir = dir
	r := start(t, o, nil)
	c := r.client(t)
	for i := range 5 {
		if err := put(t, c, fmt.Sprintf("/registry/pods/default/p%d", i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	r.end(t)
	view, err := store.OpenView(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	return view.Revision(), view.ID()
}

// snapshotCommand runs tarn snapshot and wants an exit code.
func snapshotCommand(t *testing.T, want int, flags []string, args ...string) (stdout, stderr string) {
	t.Helper()
	args = append([]string{"snapshot"}, args...)
	code, stdout, stderr := tarn(t, nil, append(args, flags...)...)
	if code != want {
		t.Fatalf("tarn %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout, stderr
}

func listJSON(t *testing.T, flags []string, args ...string) (list snapshotList) {
	t.Helper()
	out, _ := snapshotCommand(t, 0, flags, append([]string{"list", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return list
}

// TestSnapshotCommands goes through the life of snapshots, on ZFS and as copies.
func TestSnapshotCommands(t *testing.T) {
	t.Run("dataset", func(t *testing.T) {
		w := newWorld(t)
		testSnapshotCommands(t, w.dir, w.dataset, w.flags)
	})
	t.Run("copies", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		testSnapshotCommands(t, dir, dir, []string{"--data-dir=" + dir, "--copies"})
	})
}

func testSnapshotCommands(t *testing.T, dir, source string, flags []string) {
	revision, id := newStore(t, dir)
	if out, _ := snapshotCommand(t, 0, flags, "list"); out != source+" has no snapshots of tarn\n" {
		t.Errorf("list prints %q", out)
	}
	out, errs := snapshotCommand(t, 0, flags, "create", "before upgrade")
	first := strings.TrimSuffix(out, "\n")
	if !regexp.MustCompile(fmt.Sprintf(`^tarn-\d{8}T\d{6}Z-r%d$`, revision)).MatchString(first) || errs != "" {
		t.Errorf("create prints %q, %q; the revision is %d", out, errs, revision)
	}
	out, _ = snapshotCommand(t, 0, flags, "create", "--hold", "-o=json")
	var second zfs.Snapshot
	if err := json.Unmarshal([]byte(out), &second); err != nil || second.StoreID != id || second.Revision != revision ||
		second.Version != tarnVersion || strings.Join(second.Holds, " ") != keepTag {
		t.Errorf("create prints %s, %v", out, err)
	}
	list := listJSON(t, flags)
	if list.Source != source || len(list.Snapshots) != 2 || list.Snapshots[0].Name != first || list.Snapshots[0].Label != "before upgrade" ||
		!list.Snapshots[0].Keep || list.Snapshots[1].KeptBecause[0] != "last 10" || list.Snapshots[1].KeptBecause[1] != "held with keep" {
		t.Errorf("list is %+v", list)
	}
	page, _ := snapshotCommand(t, 0, flags, "list", "--keep-last=1")
	for _, want := range []string{"NAME", "KEPT BECAUSE", first + " (before upgrade)", fmt.Sprintf("  %d  ", revision), "no rule: goes with the next prune", "last 1; held with keep"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	for _, name := range []string{first, source + "@" + first, "before upgrade"} {
		if page, _ := snapshotCommand(t, 0, flags, "show", name); !strings.Contains(page, first) || !strings.Contains(page, id) {
			t.Errorf("show %q prints %s", name, page)
		}
	}
	if page, _ := snapshotCommand(t, 0, flags, "show", "newest"); !strings.Contains(page, second.Name) || !strings.Contains(page, "holds     keep") {
		t.Errorf("show prints %s", page)
	}
	_, errs = snapshotCommand(t, exitNoSnapshot, flags, "show", "before-upgrade")
	if !strings.Contains(errs, `did you mean "before upgrade"?`) {
		t.Errorf("show of a misspelled label: %s", errs)
	}
	testHoldAndPrune(t, flags, first, second.Name)
}

func testHoldAndPrune(t *testing.T, flags []string, first, held string) {
	_, errs := snapshotCommand(t, exitSnapshotKept, flags, "destroy", held)
	if !strings.Contains(errs, "held with keep") || !strings.Contains(errs, "tarn snapshot release") {
		t.Errorf("destroy of a held snapshot: %s", errs)
	}
	snapshotCommand(t, exitSnapshotKept, flags, "destroy", "--dry-run", held)
	snapshotCommand(t, 0, flags, "hold", "--tag=mine", first)
	snapshotCommand(t, 0, flags, "hold", "--tag=mine", first)
	snapshotCommand(t, 0, flags, "create")
	out, _ := snapshotCommand(t, 0, flags, "prune", "--keep-last=1")
	if !strings.Contains(out, "destroyed 0, kept 3") || !strings.Contains(out, "kept "+first+": held with mine") {
		t.Errorf("prune prints %s", out)
	}
	snapshotCommand(t, 0, flags, "release", "--tag=mine", first)
	out, _ = snapshotCommand(t, 0, flags, "prune", "--keep-last=1", "--dry-run")
	if !strings.Contains(out, "would destroy "+first+"\n") || len(listJSON(t, flags).Snapshots) != 3 {
		t.Errorf("prune --dry-run prints %s", out)
	}
	out, _ = snapshotCommand(t, 0, flags, "prune", "--keep-last=1", "-o=json")
	var r pruneReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Destroyed) != 1 || r.Destroyed[0] != first || len(r.Kept) != 2 || r.DryRun {
		t.Errorf("prune prints %s, %v", out, err)
	}
	snapshotCommand(t, 0, flags, "release", held)
	if out, _ = snapshotCommand(t, 0, flags, "destroy", "--dry-run", held); out != "would destroy "+held+"\n" {
		t.Errorf("destroy --dry-run prints %s", out)
	}
	_, errs = snapshotCommand(t, exitNoSnapshot, flags, "destroy", held, first)
	if !strings.Contains(errs, first) || len(listJSON(t, flags).Snapshots) != 2 {
		t.Errorf("destroy with a name that is gone: %s", errs)
	}
	if out, _ = snapshotCommand(t, 0, flags, "destroy", held, held); out != "destroyed "+held+"\n" {
		t.Errorf("destroy prints %s", out)
	}
}

// With the server running it is asked, or sends its data.
func TestSnapshotOfRunningServer(t *testing.T) {
	for _, name := range []string{"dataset", "copies"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dir, flags := w.dir, w.flags
			if name == "copies" {
				dir = filepath.Join(t.TempDir(), "data")
				flags = []string{"--data-dir=" + dir, "--copies"}
			}
			o := testOptions(t)
			o.dataDir = dir
			r := start(t, o, nil)
			if err := put(t, r.client(t), "/registry/pods/default/a", "one"); err != nil {
				t.Fatal(err)
			}
			out, errs := snapshotCommand(t, 0, flags, "create", "--endpoint="+r.url, "-o=json")
			if errs != "" {
				t.Error(errs)
			}
			var s zfs.Snapshot
			if err := json.Unmarshal([]byte(out), &s); err != nil || s.Revision != 2 || len(s.StoreID) != 32 {
				t.Fatalf("create prints %s, %v", out, err)
			}
			opts := defaultSourceOptions()
			opts.dataDir, opts.dirGiven, opts.copies = dir, true, name == "copies"
			if name == "dataset" {
				opts.dataset = w.dataset
			}
			if got := readSnapshot(t, opts, s.Name); got != "one" {
				t.Errorf("the snapshot holds %q", got)
			}
		})
	}
}

// readSnapshot reads a key of a snapshot as a server would find it.
func readSnapshot(t *testing.T, opts sourceOptions, name string) (value string) {
	t.Helper()
	from, err := opts.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, cleanup, err := from.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	view, err := store.OpenView(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	err = view.Scan(t.Context(), store.KeyRange{Key: []byte("/registry/pods/default/a")}, 0, func(kv store.KeyValue) error {
		value = string(kv.Value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// A server that does not answer keeps no snapshot from being made on ZFS; a copy
// can not be made without it.
func TestSnapshotWhenTheServerIsSilent(t *testing.T) {
	w := newWorld(t)
	o := testOptions(t)
	o.dataDir = w.dir
	start(t, o, nil)
	const nobody = "--endpoint=http://127.0.0.1:1"
	out, errs := snapshotCommand(t, 0, w.flags, "create", nobody)
	if !strings.HasSuffix(out, "-r0\n") || !strings.Contains(errs, "is made, but: its revision is unknown") {
		t.Errorf("create prints %s%s", out, errs)
	}
	if page, _ := snapshotCommand(t, 0, w.flags, "list"); !strings.Contains(page, "unknown") {
		t.Errorf("list prints %s", page)
	}
	_, errs = snapshotCommand(t, exitFailed, []string{"--data-dir=" + w.dir, "--copies", nobody}, "create")
	if !strings.Contains(errs, "no snapshot is made") || !strings.Contains(errs, "is in use by") {
		t.Errorf("create --copies prints %s", errs)
	}
	if left, _ := filepath.Glob(w.dir + "-snapshots/*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestSnapshotOfNoStore(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, errs := snapshotCommand(t, exitFailed, w.flags, "create")
	if !strings.Contains(errs, "no snapshot is made") || !strings.Contains(errs, w.dir) {
		t.Errorf("create prints %s", errs)
	}
	w.Unmount(w.dataset)
	_, errs = snapshotCommand(t, exitFailed, w.flags, "create")
	if !strings.Contains(errs, "not mounted") || !strings.Contains(errs, "zfs mount "+w.dataset) {
		t.Errorf("create prints %s", errs)
	}
	if w.Ran("zfs snapshot") {
		t.Error("a snapshot was made")
	}
}

func TestSnapshotOfSuspendedPool(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	for _, verb := range []string{"zfs get", "zfs list"} {
		w.Fail(verb, "cannot open 'tank/tarn': pool I/O is currently suspended", 100)
	}
	for _, args := range [][]string{{"create"}, {"list"}, {"prune"}, {"destroy", "newest"}} {
		if _, errs := snapshotCommand(t, exitFailed, w.flags, args...); !strings.Contains(errs, "zpool clear tank") {
			t.Errorf("%q prints %s", args, errs)
		}
	}
	if w.Ran("zfs snapshot") {
		t.Error("a snapshot was made")
	}
}

// Foreign snapshots are neither shown nor touched.
func TestSnapshotForeign(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	foreign := []string{"autosnap_2026-11-30_10:00:00_daily", "tarn-20200101T000000Z-r1"}
	for _, name := range foreign {
		w.Snapshot(w.dataset + "@" + name)
	}
	snapshotCommand(t, 0, w.flags, "create")
	snapshotCommand(t, 0, w.flags, "prune", "--keep-last=1")
	for _, name := range foreign {
		snapshotCommand(t, exitNoSnapshot, w.flags, "destroy", name)
	}
	if list := listJSON(t, w.flags); len(list.Snapshots) != 1 {
		t.Errorf("list is %+v", list)
	}
	if w.Ran("zfs destroy") {
		t.Errorf("ran %q", w.Commands())
	}
}

// One that is in use when its time comes is kept, and the others go.
func TestPruneBusy(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	for range 4 {
		snapshotCommand(t, 0, w.flags, "create")
	}
	first := listJSON(t, w.flags).Snapshots[0].Name
	w.Fail("zfs destroy", "cannot destroy snapshot "+w.dataset+"@"+first+": dataset is busy", 1)
	out, _ := snapshotCommand(t, 0, w.flags, "prune", "--keep-last=1")
	if !strings.Contains(out, "kept "+first+": ") || !strings.Contains(out, "dataset is busy") || !strings.Contains(out, "destroyed 2, kept 2") {
		t.Errorf("prune prints %s", out)
	}
	w.Fail("zfs destroy", "cannot destroy snapshot: permission denied", 1)
	out, errs := snapshotCommand(t, exitFailed, w.flags, "prune", "--keep-last=1")
	if !strings.Contains(errs, "zfs allow") || !strings.Contains(out, "destroyed 0") {
		t.Errorf("prune prints %s%s", out, errs)
	}
}

func TestPruneSaysThatTheClockIsWrong(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	w.SetClock(365 * 24 * 3600)
	snapshotCommand(t, 0, w.flags, "create")
	w.SetClock(0)
	_, errs := snapshotCommand(t, 0, w.flags, "prune")
	if !strings.Contains(errs, "the clock is wrong, or was") {
		t.Errorf("prune prints %s", errs)
	}
	if page, _ := snapshotCommand(t, 0, w.flags, "list"); !strings.Contains(page, "in the future") {
		t.Errorf("list prints %s", page)
	}
}

// The server's configuration file says where the data is.
func TestSnapshotConfigFile(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	file := writeFile(t, "tarn.yaml", fmt.Sprintf("data-dir: %s\ndataset: %s\nlisten-client-urls: http://127.0.0.1:4\nmax-txn-ops: 256\n", w.dir, w.dataset))
	snapshotCommand(t, 0, []string{"--config-file=" + file}, "create")
	if list := listJSON(t, []string{"--config-file=" + file}); list.Source != w.dataset || len(list.Snapshots) != 1 {
		t.Errorf("list is %+v", list)
	}
	opts := snapshotCreateOptions{sourceOptions: defaultSourceOptions(), server: defaultClientOptions()}
	opts.endpoint = &opts.server
	cmd := newSnapshotCreateCommand(process{})
	flags := snapshotFlags(newSnapshotCommand(process{}), &opts.sourceOptions)
	opts.server.register(flags)
	if err := opts.resolve(flags, []string{"TARN_CONFIG_FILE=" + file}); err != nil || opts.server.endpoint.String() != "http://127.0.0.1:4" {
		t.Errorf("%s: the server is at %s, %v", cmd.Name(), opts.server.endpoint, err)
	}
	if list := listJSON(t, []string{"--config-file=" + file, "--copies"}); list.Source != w.dir {
		t.Errorf("list of copies is %+v", list)
	}
	// A flag or variable wins over the file.
	_, _, errs := tarn(t, []string{"TARN_DATASET=tank/other"}, "snapshot", "list", "--config-file="+file)
	if !strings.Contains(errs, "tank/other") {
		t.Errorf("got %s", errs)
	}
}

func TestSnapshotUsage(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"creat"}, `did you mean "create"?`},
		{[]string{"create", "a", "b"}, "at most 1 expected"},
		{[]string{"create", "a\tb"}, "LABEL can not be"},
		{[]string{"show"}, "arguments: 0 given, 1 expected"},
		{[]string{"hold"}, "no NAME is given"},
		{[]string{"destroy"}, "no NAME is given"},
		{[]string{"hold", "--tag=a b", "x"}, "--tag can not be"},
		{[]string{"prune", "--keep-last=-1"}, "--keep-last can not be"},
		{[]string{"list", "--copies", "--dataset=tank"}, "exclude each other"},
		{[]string{"list", "--config-file=/does/not/exist"}, "--config-file"},
	} {
		code, _, errs := tarn(t, nil, append([]string{"snapshot"}, tt.args...)...)
		if code != exitUsage || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit code %d: %s", tt.args, code, errs)
		}
	}
	_, errs := snapshotCommand(t, exitFailed, []string{"--dataset=" + w.dataset, "--data-dir=" + t.TempDir()}, "list")
	if !strings.Contains(errs, "does not hold the directory") {
		t.Errorf("got %s", errs)
	}
}

func TestSavedTreeWithWrongHash(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), treeFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := newHashedFile(f)
	for _, part := range []string{"some", " data", strings.Repeat("x", 40)} {
		if err := w.write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err == nil {
		t.Error("data with a wrong hash is accepted")
	}
}

func TestSaveTreeWithoutServer(t *testing.T) {
	o := defaultClientOptions()
	o.endpoint = mustURLs(t, "http://127.0.0.1:1")[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.saveTree(ctx, t.TempDir()); err == nil || errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
}
