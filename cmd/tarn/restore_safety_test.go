package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// restoreJSON restores and returns the verdict.
func restoreJSON(t *testing.T, flags []string, args ...string) (v restoreVerdict) {
	t.Helper()
	out, _ := restore(t, 0, flags, append(args, "--output=json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The newest is never what somebody wanted to leave.
func TestNewestIsNoSafetySnapshot(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	name := createSnapshot(t, w.flags)
	safety := ""
	for range 2 {
		v := restoreJSON(t, w.flags, "newest")
		if safety = v.SafetySnapshot; v.Snapshot != name || safety == "" {
			t.Fatalf("%+v", v)
		}
	}
	if out, _ := snapshotCommand(t, 0, w.flags, "verify", "--newest"); !strings.Contains(out, name) {
		t.Errorf("verify --newest: %s", out)
	}
	if v := restoreJSON(t, w.flags, safety); v.Snapshot != safety {
		t.Errorf("%+v", v)
	}
	if _, errs := snapshotCommand(t, exitUsage, w.flags, "create", "before-restore-of-x"); !strings.Contains(errs, "tarn restore") {
		t.Error(errs)
	}
	snapshotCommand(t, 0, w.flags, "destroy", name)
	if _, errs := restore(t, exitNoSnapshot, w.flags, "newest"); !strings.Contains(errs, "newest means none of these") {
		t.Error(errs)
	}
}

// A restore that was cut off has made the snapshot already, unless something was written since.
func TestSafetySnapshotOfEarlierRestore(t *testing.T) {
	w := newWorld(t)
	revision, id := newStore(t, w.dir)
	name := createSnapshot(t, w.flags)
	d, err := zfs.OpenDataset(t.Context(), w.dataset, w.dir)
	if err != nil {
		t.Fatal(err)
	}
	take := func(known store.RestoreReport) *safetySnapshot {
		s := &safetySnapshot{of: d, warn: io.Discard}
		s.take(t.Context(), known, name)
		return s
	}
	first := take(store.RestoreReport{OldRevision: revision, OldStoreID: id})
	if !first.made || first.name == "" {
		t.Fatalf("%+v", first)
	}
	if v := restoreJSON(t, w.flags, name); v.SafetySnapshot != first.name {
		t.Errorf("the second restore made %s beside %s", v.SafetySnapshot, first.name)
	}
	for _, known := range []store.RestoreReport{
		{OldRevision: revision + 1, OldStoreID: id}, {OldRevision: revision, OldStoreID: strings.Repeat("0", 32)}, {OldProblem: "not read"},
	} {
		if s := take(known); !s.made || s.name == first.name {
			t.Errorf("%+v: %+v", known, s)
		}
	}
}

// endsWhen is a context that ends when something was done.
type endsWhen struct {
	context.Context
	done func() bool
}

func (c endsWhen) Err() error {
	if c.done() {
		return context.Canceled
	}
	return c.Context.Err()
}

// A restore that changed nothing leaves no snapshot behind.
func TestFailedRestoreGivesSafetySnapshotBack(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	name := createSnapshot(t, w.flags)
	opts := restoreOptions{sourceOptions: defaultSourceOptions(), arg: name, bump: -1, output: outputText}
	opts.dataDir, opts.dirGiven, opts.dataset = w.dir, true, w.dataset
	run := func() string {
		var warn syncBuffer
		was := len(w.Commands())
		made := func() bool {
			return slices.ContainsFunc(w.Commands()[was:], func(c string) bool { return strings.HasPrefix(c, "zfs hold "+safetyTag) })
		}
		err := runRestore(endsWhen{t.Context(), made}, opts, process{stdout: io.Discard, stderr: &warn})
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !made() {
			t.Fatalf("%v; made %v", err, made())
		}
		return warn.String()
	}
	warned := run()
	if l := listJSON(t, w.flags); len(l.Snapshots) != 1 || warned != "" {
		t.Errorf("%+v, %s", l.Snapshots, warned)
	}
	w.Fail("zfs destroy", "cannot destroy: permission denied", 1)
	if warned := run(); !strings.Contains(warned, "tarn snapshot destroy tarn-") {
		t.Errorf("that it could not be removed: %q", warned)
	}
}

// What is printed as the way back is one, from any directory.
func TestRestoreUndo(t *testing.T) {
	t.Setenv("PWD", "")
	t.Chdir(t.TempDir())
	newStore(t, "data")
	newStore(t, "other")
	flags := []string{"--data-dir=data", "--copies"}
	_, id := ownStore(t, "data")
	dir, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := restore(t, 0, flags, "./other", "--other-store")
	_, command, _ := strings.Cut(out, ": tarn ")
	command, _, ok := strings.Cut(command, " undoes this")
	if !ok {
		t.Fatal(out)
	}
	t.Chdir(t.TempDir())
	if code, out, errs := tarn(t, nil, strings.Fields(command)...); code != exitOK {
		t.Fatalf("tarn %s: exit code %d, %s%s", command, code, out, errs)
	}
	if _, now := ownStore(t, dir); now != id {
		t.Errorf("store %s instead of %s", now, id)
	}
	// What can not be read is kept, and no way back.
	v := restoreVerdict{Snapshot: "x", Dir: dir, Aside: "/kept", OldProblem: "damaged"}
	var b strings.Builder
	if err := v.print(outputText, &b); err != nil || strings.Contains(b.String(), "undoes") || !strings.Contains(b.String(), "/kept") {
		t.Errorf("%s, %v", &b, err)
	}
}

// A directory that nobody named is not made.
func TestRestoreNamesNoDir(t *testing.T) {
	source := filepath.Join(t.TempDir(), "data")
	newStore(t, source)
	t.Chdir(t.TempDir())
	opts := restoreOptions{sourceOptions: sourceOptions{dataDir: defaultDataDir}, arg: source, bump: -1, output: outputText}
	for _, dry := range []bool{true, false} {
		opts.dryRun = dry
		err := runRestore(t.Context(), opts, process{stdout: io.Discard, stderr: io.Discard})
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--data-dir") || !strings.Contains(err.Error(), "--to-dir") {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	restore(t, 0, nil, source, "--data-dir="+defaultDataDir)
}

// Without a word about where, the installed server is meant, unless a trial is in the current directory.
func TestInstalledConfigFile(t *testing.T) {
	t.Chdir(t.TempDir())
	file := writeFile(t, "tarn.yaml", "data-dir: /srv/installed\n")
	resolve := func(environ []string, args ...string) sourceOptions {
		t.Helper()
		opts := defaultSourceOptions()
		opts.installed = file
		flags := snapshotFlags(newSnapshotCommand(process{}), &opts)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := opts.resolve(flags, environ); err != nil {
			t.Fatal(err)
		}
		return opts
	}
	if o := resolve(nil); o.dataDir != "/srv/installed" || !o.dirGiven {
		t.Errorf("%+v", o)
	}
	other := writeFile(t, "other.yaml", "data-dir: /srv/other\n")
	for _, c := range []struct {
		environ, args []string
		want          string
	}{
		{nil, []string{"--config-file=" + other}, "/srv/other"},
		{[]string{"TARN_CONFIG_FILE=" + other}, nil, "/srv/other"},
		{[]string{"TARN_DATA_DIR=/srv/mine"}, nil, "/srv/mine"},
		{nil, []string{"--data-dir=/srv/mine"}, "/srv/mine"},
		{nil, []string{"--dataset=tank/x"}, defaultDataDir},
	} {
		if o := resolve(c.environ, c.args...); o.dataDir != c.want {
			t.Errorf("%q %q: %s", c.environ, c.args, o.dataDir)
		}
	}
	if err := os.Mkdir(defaultDataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if o := resolve(nil); o.dataDir != defaultDataDir || o.dirGiven {
		t.Errorf("beside a trial: %+v", o)
	}
}

// A hold that is not there is not released, and that is said.
func TestReleaseOfNoHold(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		name := createSnapshot(t, flags, "--hold")
		out, _ := snapshotCommand(t, 0, flags, "release", "--tag=other", name)
		if out != "unchanged "+name+": it has no hold with the tag other; held with keep\n" {
			t.Error(out)
		}
		if out, _ = snapshotCommand(t, 0, flags, "release", name); out != "released "+name+" (keep)\n" {
			t.Error(out)
		}
	})
}
