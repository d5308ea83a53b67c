package zfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

// backupWorld is a dataset with snapshots on pretended ZFS.
type backupWorld struct {
	*fakezfs.World
	t       *testing.T
	dataset *Dataset
	dir     string
	made    int
}

func newBackupWorld(t *testing.T) *backupWorld {
	w := &backupWorld{World: fakezfs.New(t), t: t}
	name, dir := w.Dataset("tarn")
	w.dir = dir
	var err error
	if w.dataset, err = OpenDataset(t.Context(), name, dir); err != nil {
		t.Fatal(err)
	}
	w.Dataset("backups")
	return w
}

// snapshot changes the data and makes a snapshot of it.
func (w *backupWorld) snapshot() string {
	w.t.Helper()
	w.made++
	put(w.t, w.dir, "data", strings.Repeat("x", 10_000+w.made))
	s, err := w.dataset.Create(w.t.Context(), CreateOptions{Time: someTime, Revision: int64(w.made), StoreID: "id", Label: "it's one"})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Name
}

func (w *backupWorld) target(s string) Target {
	w.t.Helper()
	target, err := ParseTarget(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return target
}

func (w *backupWorld) push(target string) TransferResult {
	w.t.Helper()
	r, err := Push(w.t.Context(), w.dataset.Name(), w.target(target), TransferOptions{Note: func(s string) { w.t.Errorf("note: %s", s) }})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestPushDir(t *testing.T) {
	w := newBackupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	w.snapshot()
	second := w.snapshot()
	w.push(dir)
	third := w.snapshot()
	if r := w.push(dir); len(r.Sent) != 1 || r.Sent[0].From != second || r.Newest != third {
		t.Errorf("result %+v", r)
	}
	for _, to := range []string{"tank/back"} {
		if _, err := Pull(t.Context(), w.target(dir), "", to, TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		got := listOf(t, to)
		if len(got) != 3 || got[2].Name != third || got[2].Label != "it's one" || got[2].Revision != 3 {
			t.Errorf("pulled %+v", got)
		}
	}
}

func listOf(t *testing.T, dataset string) []Snapshot {
	t.Helper()
	snaps, err := (&Dataset{name: dataset}).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snaps
}

// TestManifestTorn has a crash cut the manifest at every byte of its last line: what
// was complete before is kept, and the next push completes the rest.
func TestManifestTorn(t *testing.T) {
	w := newBackupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	w.snapshot()
	w.push(dir)
	first := readFile(t, filepath.Join(dir, manifestName))
	w.snapshot()
	w.push(dir)
	both := readFile(t, filepath.Join(dir, manifestName))
	for n := len(first); n < len(both); n += 1 + len(both)/6 {
		put(t, dir, manifestName, string(both[:n]))
		if files, good, err := readManifest(dir); err != nil || len(files) != 1 || good != int64(len(first)) {
			t.Fatalf("cut at %d: %d files, %d bytes, %v", n, len(files), good, err)
		}
		report, err := VerifyBackup(t.Context(), w.target(dir), "", VerifyOptions{})
		if err != nil || len(report.Findings) != 0 || len(report.Notes) != 1 || report.Snapshots != 1 {
			t.Fatalf("cut at %d: %+v, %v", n, report, err)
		}
		w.push(dir)
		if got := readFile(t, filepath.Join(dir, manifestName)); !bytes.Equal(got, both) {
			t.Fatalf("cut at %d, the manifest becomes %s", n, got)
		}
	}
	// The first line, too.
	put(t, dir, manifestName, string(first[:10]))
	w.push(dir)
	if got := readFile(t, filepath.Join(dir, manifestName)); !bytes.Equal(got, both) {
		t.Fatalf("the manifest becomes %s", got)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestManifestRefused(t *testing.T) {
	w := newBackupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	w.snapshot()
	w.snapshot()
	w.push(dir)
	text := readFile(t, filepath.Join(dir, manifestName))
	edit := func(change func(files []StreamFile) []StreamFile) string {
		var files []StreamFile
		for line := range bytes.Lines(text) {
			var f StreamFile
			if err := json.Unmarshal(line, &f); err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		var b strings.Builder
		for _, f := range change(files) {
			line, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(line, '\n'))
		}
		return b.String()
	}
	for name, changed := range map[string]string{
		"no JSON":              "{\n" + string(text),
		"no format":            "{}\n" + string(text),
		"the first is gone":    edit(func(f []StreamFile) []StreamFile { return f[1:] }),
		"the order":            edit(func(f []StreamFile) []StreamFile { return []StreamFile{f[1], f[0]} }),
		"another from":         edit(func(f []StreamFile) []StreamFile { f[1].FromGUID = "1"; return f }),
		"raw in between":       edit(func(f []StreamFile) []StreamFile { f[1].Raw = true; return f }),
		"a path for a name":    edit(func(f []StreamFile) []StreamFile { f[1].File = "../x.zfs"; return f }),
		"no snapshot is named": edit(func(f []StreamFile) []StreamFile { f[1].Snapshot = ""; return f }),
	} {
		put(t, dir, manifestName, changed)
		if _, _, err := readManifest(dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		w.snapshot()
		if _, err := Push(t.Context(), w.dataset.Name(), w.target(dir), TransferOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: push: %v", name, err)
		}
		if got := readFile(t, filepath.Join(dir, manifestName)); string(got) != changed {
			t.Errorf("%s: a refused push changed the manifest", name)
		}
	}
	put(t, dir, manifestName, edit(func(f []StreamFile) []StreamFile { f[0].Format = 2; return f }))
	if _, _, err := readManifest(dir); err == nil || !strings.Contains(err.Error(), "newer tarn") {
		t.Errorf("a newer format: %v", err)
	}
	// What is in a file is looked at as well as what the manifest says of it.
	put(t, dir, manifestName, edit(func(f []StreamFile) []StreamFile {
		f[1].GUID = "12345"
		return f
	}))
	report, err := VerifyBackup(t.Context(), w.target(dir), "", VerifyOptions{})
	if err != nil || len(report.Findings) != 1 || !strings.Contains(report.Findings[0], "stream from") {
		t.Errorf("report %+v, %v", report, err)
	}
}

func TestPushDirRefused(t *testing.T) {
	w := newBackupWorld(t)
	w.snapshot()
	dir := t.TempDir()
	put(t, dir, "holiday.jpg", "x")
	if _, err := Push(t.Context(), w.dataset.Name(), w.target(dir), TransferOptions{}); !errors.Is(err, ErrTargetInUse) || !strings.Contains(err.Error(), "holiday.jpg") {
		t.Errorf("a directory of something else: %v", err)
	}
	if _, err := Push(t.Context(), w.dataset.Name(), w.target("/nosuchdir/b"), TransferOptions{}); err == nil || !strings.Contains(err.Error(), "mounted?") {
		t.Errorf("no directory above: %v", err)
	}
	empty := t.TempDir()
	if _, err := VerifyBackup(t.Context(), w.target(empty), "", VerifyOptions{}); !errors.Is(err, ErrNoBackup) {
		t.Errorf("verify of an empty directory: %v", err)
	}
	unlock, err := lockTarget(empty)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), w.dataset.Name(), w.target(empty), TransferOptions{}); !errors.Is(err, ErrUnderWay) {
		t.Errorf("a second push: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	w.push(empty)
}

func TestStreamGUIDs(t *testing.T) {
	w := newBackupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	w.snapshot()
	w.push(dir)
	files, _, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	stream := readFile(t, filepath.Join(dir, files[0].File))
	if from, to, err := streamGUIDs(bytes.NewReader(stream), int64(len(stream))); err != nil || from != "" || to != files[0].GUID {
		t.Errorf("from %q to %q, %v", from, to, err)
	}
	for n := range 2 * recordSize {
		if _, _, err := streamGUIDs(bytes.NewReader(stream[:n]), int64(n)); err == nil {
			t.Fatalf("the first %d bytes are a stream", n)
		}
	}
	for _, n := range []int{len(stream) - 1, len(stream) - recordSize, len(stream) / 2} {
		if _, _, err := streamGUIDs(bytes.NewReader(stream[:n]), int64(n)); err == nil {
			t.Errorf("%d of %d bytes are a stream", n, len(stream))
		}
	}
}
