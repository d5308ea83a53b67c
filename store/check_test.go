package store

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/tree"
)

// flipBit damages a file.
func flipBit(t *testing.T, path string, at int) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	text[at] ^= 1
	must(t, os.WriteFile(path, text, 0o600))
}

// storeInDir makes a store with a few changes and returns its directory.
func storeInDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	must(t, err)
	for range 3 {
		res, err := s.Txn(bg, &TxnRequest{Success: []Op{{Put: &PutRequest{Key: []byte("k"), Value: []byte("v")}}}})
		must(t, err)
		res.Close()
	}
	must(t, s.Close())
	return dir
}

// What a killed restore has left is told, and is no damage.
func TestCheckNotesLeftovers(t *testing.T) {
	dir := storeInDir(t)
	must(t, os.Mkdir(filepath.Join(dir, stagingName), 0o700))
	r, err := Check(bg, dir)
	must(t, err)
	if len(r.Findings) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], filepath.Join(dir, stagingName)) {
		t.Errorf("findings %q, notes %q", r.Findings, r.Notes)
	}
}

// A meta page that is damaged while the log goes on from the other one is told, and no damage: the next
// start warns once and repairs it.
func TestCheckDamagedMetaPage(t *testing.T) {
	page, noted := os.Getpagesize(), 0
	for _, at := range []int{16, 64, page + 16, page + 64} {
		dir := storeInDir(t)
		before, err := Check(bg, dir)
		must(t, err)
		flipBit(t, filepath.Join(dir, treeName), at)
		r, err := Check(bg, dir)
		must(t, err)
		switch {
		case len(r.Findings) > 0: // the log began behind it
			if !strings.Contains(strings.Join(r.Findings, "\n"), "meta page") {
				t.Errorf("byte %d: findings %q", at, r.Findings)
			}
			continue
		case len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "meta page"):
			t.Errorf("byte %d: notes %q", at, r.Notes)
		case r.Revision != before.Revision || r.Hash != before.Hash:
			t.Errorf("byte %d: %+v instead of %+v", at, r, before)
		}
		noted++
		var log bytes.Buffer
		s, err := Open(Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		must(t, s.Close())
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "meta page") {
			t.Errorf("byte %d: %d warnings: %s", at, n, log.String())
		}
		s, err = Open(Options{Dir: dir})
		must(t, err)
		must(t, s.Close())
		if r, err := Check(bg, dir); err != nil || len(r.Findings)+len(r.Notes) > 0 {
			t.Errorf("byte %d, after two starts: %+v, %v", at, r, err)
		}
	}
	if noted == 0 {
		t.Error("all of them were findings")
	}
}

// Without a log what the other meta page stands for may be older: a file by itself, or copied into a directory.
func TestCheckDamagedMetaPageWithoutLog(t *testing.T) {
	from := filepath.Join(storeInDir(t), treeName)
	flipBit(t, from, 16)
	r, err := CheckTree(bg, from)
	must(t, err)
	if !strings.Contains(strings.Join(r.Findings, "\n"), "meta page 0") {
		t.Errorf("a file: %+v", r)
	}
	dir := t.TempDir()
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, treeName), content, 0o600))
	if r, err = Check(bg, dir); err != nil || !strings.Contains(strings.Join(r.Findings, "\n"), "meta page 0") {
		t.Errorf("a directory without a log: %+v, %v", r, err)
	}
}

// What was not read is not in the report.
func TestCheckLeavesOutWhatItDidNotRead(t *testing.T) {
	dir := storeInDir(t)
	name := filepath.Join(dir, treeName)
	must(t, os.Truncate(name, int64(2*os.Getpagesize())))
	r, err := Check(bg, dir)
	must(t, err)
	if len(r.Findings) == 0 || r.ContentRead || r.LogRead || r.StoreID != "" || r.TreeBytes != int64(2*os.Getpagesize()) {
		t.Errorf("a cut off tree: %+v", r)
	}
	must(t, os.Remove(name))
	if r, err = Check(bg, dir); err != nil || len(r.Findings) != 1 || r.ContentRead || r.LogRead {
		t.Errorf("no tree: %+v, %v", r, err)
	}
}

// A pipe is not waited for.
func TestPipeInDir(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, treeName), 0o600))
	if _, err := Check(bg, dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("the check of a pipe: %v", err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("the start with a pipe: %v", err)
	}
	dir = storeInDir(t)
	segments, err := filepath.Glob(filepath.Join(dir, walName, "*.wal"))
	must(t, err)
	must(t, os.Remove(segments[0]))
	must(t, syscall.Mkfifo(segments[0], 0o600))
	if _, err := Check(bg, dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("the check of a pipe in the log: %v", err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("the start with a pipe in the log: %v", err)
	}
}

// A tree without an ID is none of the stores that can be expected, not even one of zeros.
func TestExpectedIDOfTreeWithoutOne(t *testing.T) {
	dir := t.TempDir()
	tr, err := tree.Open(tree.Options{Path: filepath.Join(dir, treeName)})
	must(t, err)
	must(t, tr.Close())
	_, err = Open(Options{Dir: dir, ExpectID: strings.Repeat("0", 32)})
	wantErr(t, err, ErrForeign)
	if r, err := Check(bg, dir); err != nil || r.StoreID != "" || len(r.Findings) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOpenBesideUnfinishedImport(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, treeName+tree.BuildSuffix)
	must(t, os.WriteFile(left, []byte("x"), 0o600))
	_, err := Open(Options{Dir: dir})
	wantErr(t, err, ErrForeign)
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the start left %v, %v", names, err)
	}
	must(t, os.Rename(left, filepath.Join(dir, treeName+".new"))) // of a first start that was cut off
	s, err := Open(Options{Dir: dir})
	must(t, err)
	must(t, s.Close())
	if _, err := os.Stat(filepath.Join(dir, treeName+".new")); err == nil {
		t.Error("what the first start left is still there")
	}
}
