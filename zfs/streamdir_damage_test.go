package zfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chainWorld is a directory with a chain of three streams.
func chainWorld(t *testing.T) (w *backupWorld, dir string, files []StreamFile) {
	w = newBackupWorld(t)
	dir = filepath.Join(t.TempDir(), "b")
	for range 3 {
		w.snapshot()
	}
	w.push(dir)
	files, _, err := readManifest(dir)
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	return w, dir, files
}

// TestPushDirBrokenChain pushes onto a chain with a hole: what is added could not be
// restored, so a push must not say that all is well, with something to send or without.
func TestPushDirBrokenChain(t *testing.T) {
	w, dir, files := chainWorld(t)
	before := readFile(t, filepath.Join(dir, manifestName))
	for name, damage := range map[string]func(path string) error{
		"missing":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 1000) },
		"longer": func(path string) error {
			return os.WriteFile(path, append(readFile(t, path), 'x'), 0o600)
		},
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		for _, f := range files {
			path := filepath.Join(dir, f.File)
			good := readFile(t, path)
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			for _, dryRun := range []bool{true, false} {
				_, err := Push(t.Context(), w.dataset.Name(), w.target(dir), TransferOptions{DryRun: dryRun})
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), f.File) || !strings.Contains(err.Error(), "new directory") {
					t.Errorf("%s: %s: %v", name, f.File, err)
				}
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			put(t, dir, f.File, string(good))
			w.push(dir)
		}
		w.snapshot() // for the next kind of damage there is something to send
		if _, err := Push(t.Context(), w.dataset.Name(), w.target(dir), TransferOptions{DryRun: true}); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, filepath.Join(dir, manifestName)); !bytes.HasPrefix(got, before) {
			t.Fatalf("%s: the manifest becomes %s", name, got)
		}
	}
}

// TestManifestBadLine damages one line: the files of the others are still known, and
// what is before it can be had.
func TestManifestBadLine(t *testing.T) {
	w, dir, files := chainWorld(t)
	lines := bytes.SplitAfter(readFile(t, filepath.Join(dir, manifestName)), []byte("\n"))
	for bad, line := range map[string]string{"no JSON": "#\n", "no format": "{}\n", "no snapshot": `{"format":1,"file":"0002-x.zfs"}` + "\n"} {
		put(t, dir, manifestName, string(lines[0])+line+string(lines[2]))
		report, err := VerifyBackup(t.Context(), w.target(dir), "", VerifyOptions{})
		if err != nil || report.Snapshots != 2 || report.Newest != files[0].Snapshot || len(report.Findings) != 1 || len(report.Notes) != 1 {
			t.Fatalf("%s: %+v, %v", bad, report, err)
		}
		if !strings.Contains(report.Findings[0], manifestName+", line 2") {
			t.Errorf("%s: found %q", bad, report.Findings)
		}
		if n := report.Notes[0]; !strings.HasPrefix(n, files[1].File) || !strings.Contains(n, "keep it") || strings.Contains(n, "replaces") {
			t.Errorf("%s: noted %q", bad, n)
		}
	}
	if _, err := Pull(t.Context(), w.target(dir), "", "tank/back", TransferOptions{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "--snapshot "+files[0].Snapshot) {
		t.Errorf("pull of all: %v", err)
	}
	if _, err := Pull(t.Context(), w.target(dir), files[0].Snapshot, "tank/back", TransferOptions{}); err != nil {
		t.Errorf("pull of what is before: %v", err)
	}
	// A damaged file before the bad line, and one behind it.
	for i, want := range map[int]string{0: "", 2: files[0].Snapshot} {
		path := filepath.Join(dir, files[i].File)
		good := readFile(t, path)
		put(t, dir, files[i].File, "x")
		report, err := VerifyBackup(t.Context(), w.target(dir), "", VerifyOptions{})
		if err != nil || len(report.Findings) != 2 || report.Newest != want {
			t.Errorf("%s damaged: %+v, %v", files[i].File, report, err)
		}
		put(t, dir, files[i].File, string(good))
	}
}

func TestPushDirPlace(t *testing.T) {
	w := newBackupWorld(t)
	w.snapshot()
	file := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(file), "file", "x")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.dir, link); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{file, w.dir, filepath.Join(w.dir, "b"), filepath.Join(link, "b")} {
		for _, dryRun := range []bool{true, false} {
			if _, err := Push(t.Context(), w.dataset.Name(), w.target(place), TransferOptions{DryRun: dryRun}); !errors.Is(err, ErrTargetInUse) {
				t.Errorf("push to %s: %v", place, err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused push has made its directory: %v", err)
	}
	if _, err := Push(t.Context(), w.dataset.Name(), w.target(w.dataset.Name()), TransferOptions{}); !errors.Is(err, ErrTargetInUse) {
		t.Errorf("push into itself: %v", err)
	}
}
