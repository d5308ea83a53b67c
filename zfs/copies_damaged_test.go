package zfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A copy whose description is damaged does not vanish: it is listed in its place,
// no rule removes it, and nothing but Destroy takes it.
func TestDamagedDescription(t *testing.T) {
	for what, text := range map[string]string{
		"cut off":         `{"format": 1, "name": "tarn-2026`,
		"empty":           "",
		"another's":       `{"format": 1, "name": "tarn-20200101T000000Z-r1", "properties": {"tarn-kv:revision": "7"}}`,
		"another format":  `{"format": 2, "name": "tarn-20261130T210507Z-r7", "properties": {"tarn-kv:revision": "7"}}`,
		"without number":  `{"format": 1, "name": "tarn-20261130T210507Z-r7", "properties": {}}`,
		"no description":  "-",
		"no regular file": "/",
	} {
		t.Run(what, func(t *testing.T) {
			s := copiesSubject(t)
			before := s.create(t, CreateOptions{Revision: 6, Time: someTime.Add(-time.Hour)})
			bad := s.create(t, CreateOptions{Revision: 7})
			after := s.create(t, CreateOptions{Revision: 8, Time: someTime.Add(time.Hour)})
			record := filepath.Join(s.Snapshots.(copying).Root(), bad.Name, recordName)
			if err := os.Remove(record); err != nil {
				t.Fatal(err)
			}
			switch text {
			case "-":
			case "/":
				put(t, record, "x", "")
			default:
				put(t, filepath.Dir(record), recordName, text)
			}
			got := s.list(t)
			if !slices.Equal(names(got), []string{before.Name, bad.Name, after.Name}) {
				t.Fatalf("list %v", names(got))
			}
			if d := got[1]; d.Problem == "" || d.Revision != 7 || !d.Created.Equal(someTime) || got[0].Problem+got[2].Problem != "" {
				t.Errorf("list %+v", got)
			}
			for _, d := range (Rules{}).Apply(someTime.Add(1000*time.Hour), got) {
				if d.Keep != (d.Snapshot.Name != before.Name) {
					t.Errorf("%s: keep %v for %q", d.Snapshot.Name, d.Keep, d.Reasons)
				}
			}
			_, _, openErr := s.Open(t.Context(), bad.Name)
			for what, err := range map[string]error{
				"hold": s.Hold(t.Context(), bad.Name, "x"), "release": s.Release(t.Context(), bad.Name, "x"), "open": openErr,
				"set property": s.SetProperty(t.Context(), bad.Name, PropLabel, "x"), "check": s.CheckFiles(t.Context(), bad.Name),
			} {
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), bad.Name) {
					t.Errorf("%s: %v", what, err)
				}
			}
			last := s.create(t, CreateOptions{Revision: 9, Time: someTime.Add(2 * time.Hour)})
			if err := s.Destroy(t.Context(), bad.Name); err != nil {
				t.Fatal(err)
			}
			if got := names(s.list(t)); !slices.Equal(got, []string{before.Name, after.Name, last.Name}) {
				t.Errorf("list %v", got)
			}
		})
	}
}

func TestDamagedDescriptionOfTheNewest(t *testing.T) {
	s := copiesSubject(t)
	s.create(t, CreateOptions{Revision: 6})
	bad := s.create(t, CreateOptions{Revision: 7})
	put(t, filepath.Join(s.Snapshots.(copying).Root(), bad.Name), recordName, "{")
	if got := s.list(t); got[len(got)-1].Name != bad.Name {
		t.Errorf("list %v", names(got))
	}
}

func TestCheckFiles(t *testing.T) {
	s := copiesSubject(t)
	put(t, s.dir, "wal/1.wal", "a log")
	for what, damage := range map[string]struct {
		do   func(dir string) error
		want string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"bit": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tree.db"), []byte("texu"), 0o600)
		}, "tree.db has other bytes"},
		"length":  {func(dir string) error { return os.Truncate(filepath.Join(dir, "wal/1.wal"), 2) }, "wal/1.wal has 2 bytes and had 5"},
		"missing": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "wal")) }, "wal/1.wal is missing"},
		"more":    {func(dir string) error { return os.WriteFile(filepath.Join(dir, "wal/2.wal"), nil, 0o600) }, "wal/2.wal came later"},
	} {
		snap := s.create(t, CreateOptions{Revision: 1, Hold: "a"})
		// What changes the description leaves what it says of the files.
		if err := s.SetProperty(t.Context(), snap.Name, PropLabel, "x"); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.Snapshots.(copying).Root(), snap.Name)
		if err := damage.do(dir); err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(t.TempDir(), "brought here")
		if err := os.CopyFS(elsewhere, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		for where, err := range map[string]error{
			"in place":  s.CheckFiles(t.Context(), snap.Name),
			"elsewhere": CheckCopy(t.Context(), elsewhere),
		} {
			if damage.want == "" && err != nil || damage.want != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), damage.want)) {
				t.Errorf("%s, %s: %v", what, where, err)
			}
		}
		// Without a description, or with one of an older version, nothing is known.
		put(t, elsewhere, recordName, `{"format": 1, "name": "x", "properties": {"tarn-kv:revision": "1"}}`)
		if err := CheckCopy(t.Context(), elsewhere); err != nil {
			t.Errorf("%s, with no files recorded: %v", what, err)
		}
		if err := os.Remove(filepath.Join(elsewhere, recordName)); err != nil {
			t.Fatal(err)
		}
		if err := CheckCopy(t.Context(), elsewhere); err != nil {
			t.Errorf("%s, without a description: %v", what, err)
		}
	}
}

// A symbolic link among the copies is nobody's copy, and nothing is done to what it leads to.
func TestLinkAmongCopies(t *testing.T) {
	s := copiesSubject(t)
	ours := s.create(t, CreateOptions{Revision: 1})
	root := s.Snapshots.(copying).Root()
	link := "tarn-20261130T210508Z-r2"
	if err := os.Symlink(ours.Name, filepath.Join(root, link)); err != nil {
		t.Fatal(err)
	}
	if got := names(s.list(t)); !slices.Equal(got, []string{ours.Name}) {
		t.Errorf("list %v", got)
	}
	_, _, openErr := s.Open(t.Context(), link)
	for what, err := range map[string]error{"open": openErr, "destroy": s.Destroy(t.Context(), link), "hold": s.Hold(t.Context(), link, "x")} {
		if !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The copies can be on another file system, by a symbolic link, and that can be missing.
func TestLinkToCopies(t *testing.T) {
	s := copiesSubject(t)
	root, away := s.Snapshots.(copying).Root(), filepath.Join(t.TempDir(), "away")
	if err := os.Symlink(away, root); err != nil {
		t.Fatal(err)
	}
	_, listErr := s.List(t.Context())
	_, createErr := s.Create(t.Context(), CreateOptions{Revision: 1, Time: someTime})
	for what, err := range map[string]error{"list": listErr, "create": createErr} {
		if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), root+" is a symbolic link to "+away) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Mkdir(away, 0o700); err != nil {
		t.Fatal(err)
	}
	ours := s.create(t, CreateOptions{Revision: 1})
	if got := names(s.list(t)); !slices.Equal(got, []string{ours.Name}) {
		t.Errorf("list %v", got)
	}
}
