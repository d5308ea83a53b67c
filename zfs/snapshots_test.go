package zfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// subject is an implementation of Snapshots under test.
type subject struct {
	Snapshots
	dir string // the data directory
	// foreign makes a snapshot that is not ours, under any name.
	foreign func(t *testing.T, name string)
	// all are the names of all snapshots, foreign ones too.
	all func(t *testing.T) []string
}

var someTime = time.Date(2026, 11, 30, 21, 5, 7, 0, time.UTC)

// testSnapshots holds an implementation to what the interface promises.
func testSnapshots(t *testing.T, start func(t *testing.T) subject) {
	for name, test := range map[string]func(*testing.T, subject){
		"create and list":        testCreateAndList,
		"same second":            testSameSecond,
		"content":                testContent,
		"hold":                   testHold,
		"create held":            testCreateHeld,
		"properties":             testProperties,
		"what is not there":      testMissing,
		"what is not ours":       testForeign,
		"options that are wrong": testWrongOptions,
	} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s subject) create(t *testing.T, opts CreateOptions) Snapshot {
	t.Helper()
	if opts.Time.IsZero() {
		opts.Time = someTime
	}
	snap, err := s.Create(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func (s subject) list(t *testing.T) []Snapshot {
	t.Helper()
	snaps, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snaps
}

func names(snaps []Snapshot) (names []string) {
	for _, s := range snaps {
		names = append(names, s.Name)
	}
	return names
}

func testCreateAndList(t *testing.T, s subject) {
	if got := s.list(t); len(got) != 0 {
		t.Fatalf("there are snapshots at the start: %v", got)
	}
	before := time.Now().Add(-2 * time.Second)
	put(t, s.dir, "tree.db", "one")
	first := s.create(t, CreateOptions{Revision: 17, StoreID: "0123456789abcdef0123456789abcdef", Version: "1.2.3", Label: "before the upgrade, 100% sure"})
	// Made later, though the clock says earlier.
	second := s.create(t, CreateOptions{Revision: 5, Time: someTime.Add(-time.Hour)})
	if first.Name != "tarn-20261130T210507Z-r17" || second.Name != "tarn-20261130T200507Z-r5" {
		t.Errorf("names %q, %q", first.Name, second.Name)
	}
	if first.Revision != 17 || first.StoreID != "0123456789abcdef0123456789abcdef" || first.Version != "1.2.3" ||
		first.Label != "before the upgrade, 100% sure" || first.Verified != nil || first.GUID == "" {
		t.Errorf("got %+v", first)
	}
	if first.Created.Before(before) || first.Created.After(time.Now().Add(2*time.Second)) {
		t.Errorf("created at %v", first.Created)
	}
	got := s.list(t)
	if !slices.Equal(names(got), []string{first.Name, second.Name}) || got[0].Order >= got[1].Order || got[0].GUID == got[1].GUID {
		t.Errorf("list %+v", got)
	}
	if got[0].Label != first.Label || got[0].SizeBytes <= 0 {
		t.Errorf("list has %+v", got[0])
	}
	if err := s.Destroy(t.Context(), first.Name); err != nil {
		t.Fatal(err)
	}
	if got := names(s.list(t)); !slices.Equal(got, []string{second.Name}) {
		t.Errorf("after the end of the first there are %v", got)
	}
}

func testSameSecond(t *testing.T, s subject) {
	var want []string
	for _, end := range []string{"", "-2", "-3"} {
		snap := s.create(t, CreateOptions{Revision: 4})
		want = append(want, "tarn-20261130T210507Z-r4"+end)
		if snap.Name != want[len(want)-1] {
			t.Errorf("name %q, want %q", snap.Name, want[len(want)-1])
		}
	}
	if got := names(s.list(t)); !slices.Equal(got, want) {
		t.Errorf("list %v", got)
	}
}

func testContent(t *testing.T, s subject) {
	put(t, s.dir, "tree.db", "then")
	put(t, s.dir, "wal/1.wal", "log")
	snap := s.create(t, CreateOptions{Revision: 1})
	put(t, s.dir, "tree.db", "now")
	put(t, s.dir, "wal/2.wal", "more")
	dir, cleanup, err := s.Open(t.Context(), snap.Name)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tree.db": "then", "wal/1.wal": "log"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "wal/2.wal")); err == nil {
		t.Error("a later file is in the snapshot")
	}
	if err := cleanup(); err != nil {
		t.Error(err)
	}
}

func testHold(t *testing.T, s subject) {
	name := s.create(t, CreateOptions{Revision: 1}).Name
	for _, tag := range []string{"b", "keep:this-one", "b"} {
		if err := s.Hold(t.Context(), name, tag); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.list(t)[0].Holds; !slices.Equal(got, []string{"b", "keep:this-one"}) {
		t.Errorf("holds %v", got)
	}
	if err := s.Destroy(t.Context(), name); !errors.Is(err, ErrBusy) {
		t.Errorf("destroying a held snapshot: %v", err)
	}
	for _, tag := range []string{"b", "b", "never-there"} {
		if err := s.Release(t.Context(), name, tag); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Destroy(t.Context(), name); !errors.Is(err, ErrBusy) {
		t.Errorf("destroying a snapshot with one hold left: %v", err)
	}
	if err := s.Release(t.Context(), name, "keep:this-one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context(), name); err != nil {
		t.Error(err)
	}
}

func testCreateHeld(t *testing.T, s subject) {
	snap := s.create(t, CreateOptions{Revision: 1, Hold: "tarn"})
	if !slices.Equal(snap.Holds, []string{"tarn"}) {
		t.Errorf("holds %v", snap.Holds)
	}
	if err := s.Destroy(t.Context(), snap.Name); !errors.Is(err, ErrBusy) {
		t.Errorf("destroying it: %v", err)
	}
	if err := s.Release(t.Context(), snap.Name, "tarn"); err != nil {
		t.Error(err)
	}
}

func testProperties(t *testing.T, s subject) {
	name := s.create(t, CreateOptions{Revision: 1}).Name
	v := Verification{Time: someTime, Revision: 3, Hash: 0xdeadbeef}
	for prop, value := range map[string]string{PropVerified: v.String(), PropLabel: "a b"} {
		if err := s.SetProperty(t.Context(), name, prop, value); err != nil {
			t.Fatal(err)
		}
	}
	got := s.list(t)[0]
	if got.Verified == nil || *got.Verified != v || got.Label != "a b" {
		t.Errorf("got %+v", got)
	}
	// Whatever somebody writes there is not a verification.
	if err := s.SetProperty(t.Context(), name, PropVerified, "yes"); err != nil {
		t.Fatal(err)
	}
	if got := s.list(t)[0].Verified; got != nil {
		t.Errorf("verified %+v", got)
	}
}

func testMissing(t *testing.T, s subject) {
	const name = "tarn-20200101T000000Z-r1"
	_, _, openErr := s.Open(t.Context(), name)
	for what, err := range map[string]error{
		"hold":         s.Hold(t.Context(), name, "x"),
		"release":      s.Release(t.Context(), name, "x"),
		"destroy":      s.Destroy(t.Context(), name),
		"set property": s.SetProperty(t.Context(), name, PropLabel, "x"),
		"open":         openErr,
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func testForeign(t *testing.T, s subject) {
	foreign := []string{
		"daily", "tarn-", "tarn-20261130T210507Z", "tarn-20261130T210507Z-r01",
		"tarn-20261130T210508Z-r9", // our form, without our property
	}
	for _, name := range foreign {
		s.foreign(t, name)
	}
	ours := s.create(t, CreateOptions{Revision: 9})
	if got := names(s.list(t)); !slices.Equal(got, []string{ours.Name}) {
		t.Errorf("list %v", got)
	}
	for _, name := range foreign {
		_, _, openErr := s.Open(t.Context(), name)
		for what, err := range map[string]error{
			"hold":         s.Hold(t.Context(), name, "x"),
			"release":      s.Release(t.Context(), name, "x"),
			"destroy":      s.Destroy(t.Context(), name),
			"set property": s.SetProperty(t.Context(), name, PropRevision, "1"),
			"open":         openErr,
		} {
			if !errors.Is(err, ErrNotOurs) {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
	// Nothing that zfs would take for more than one snapshot, or for an option.
	for _, name := range []string{"", "%", "a%b", ours.Name + "," + foreign[4], ours.Name + "%", "-r", "../" + ours.Name, ours.Name + "/..", ours.Name + "\n"} {
		if err := s.Destroy(t.Context(), name); !errors.Is(err, ErrNotOurs) {
			t.Errorf("destroy %q: %v", name, err)
		}
	}
	for _, name := range append(foreign, ours.Name) {
		if !slices.Contains(s.all(t), name) {
			t.Errorf("%s is gone", name)
		}
	}
}

func testWrongOptions(t *testing.T, s subject) {
	for what, opts := range map[string]CreateOptions{
		"revision": {Revision: -1}, "label": {Label: "a\tb"}, "another label": {Label: "-"},
		"newest": {Label: "newest"}, "name": {Label: "tarn-20261130T210507Z-r17"}, "full name": {Label: "tank/x@tarn-20261130T210507Z-r17"},
		"hold": {Hold: "a b"}, "option": {Hold: "-r"},
	} {
		opts.Time = someTime
		if snap, err := s.Create(t.Context(), opts); err == nil {
			t.Errorf("%s: made %v", what, snap.Name)
		}
	}
	if got := s.all(t); len(got) != 0 {
		t.Errorf("made %v", got)
	}
	name := s.create(t, CreateOptions{}).Name
	for _, tag := range []string{"", "-r", ".send-1", "a/b", "a@b", "a\nb"} {
		if s.Hold(t.Context(), name, tag) == nil || s.Release(t.Context(), name, tag) == nil {
			t.Errorf("the tag %q is accepted", tag)
		}
	}
}
