package zfs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPush(t *testing.T) {
	ssh := fakeSSH(t)
	w := newBackupWorld(t)
	first := w.snapshot()
	w.Snapshot("tank/tarn@autosnap_2026-11-30_12:00:00_daily")
	target := "ssh://backup@nas/tank/backups/tarn"
	put(t, ssh, "cut", "4000")
	r, err := Push(t.Context(), w.dataset.Name(), w.target(target), TransferOptions{})
	if !errors.Is(err, ErrSSH) || r.Part == nil || r.Part.SizeBytes == 0 {
		t.Fatalf("a lost connection: %+v, %v", r, err)
	}
	second := w.snapshot()
	r = w.push(target)
	if len(r.Sent) != 2 || !r.Sent[0].Resumed || r.Sent[0].Snapshot != first || r.Sent[1].From != first {
		t.Errorf("result %+v", r)
	}
	got := listOf(t, "tank/backups/tarn")
	if len(got) != 2 || got[1].Name != second || got[1].StoreID != "id" || got[1].Label != "it's one" {
		t.Errorf("at the target are %+v", got)
	}
	here := listOf(t, "tank/tarn")
	if len(here[0].Holds) != 0 || len(here[1].Holds) != 1 {
		t.Errorf("at the source are %+v", here)
	}
	// From the bookmark, with the snapshot gone.
	third := w.snapshot()
	if err := w.dataset.Release(t.Context(), second, w.target(target).HoldTag()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{first, second} {
		if err := w.dataset.Destroy(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if r := w.push(target); len(r.Sent) != 1 || r.Sent[0].From != second || r.Newest != third {
		t.Errorf("result %+v", r)
	}
	if w.Ran("zfs receive -F") || w.Ran("zfs rollback") || w.Ran("zfs destroy tank/backups") {
		t.Error("something at the target was destroyed")
	}
}

// TestPushBookmarks pushes to two targets, one of which is far behind: its bookmark stays.
func TestPushBookmarks(t *testing.T) {
	w := newBackupWorld(t)
	slow, fast := "tank/backups/slow", filepath.Join(t.TempDir(), "fast")
	first := w.snapshot()
	w.push(slow)
	for range 3 {
		w.snapshot()
		w.push(fast)
	}
	last := w.snapshot()
	w.push(fast)
	h, err := readHistory(t.Context(), host{}, w.dataset.Name())
	if err != nil {
		t.Fatal(err)
	}
	var marks []string
	for _, b := range h.bookmarks {
		marks = append(marks, b.name)
	}
	if len(marks) != 2 || marks[0] != first || marks[1] != last {
		t.Errorf("the bookmarks are %q", marks)
	}
	records, err := PushRecords(t.Context(), w.dataset.Name())
	if err != nil || len(records) != 2 {
		t.Errorf("records %+v, %v", records, err)
	}
	if err := Forget(t.Context(), w.dataset.Name(), w.target(slow)); err != nil {
		t.Fatal(err)
	}
	if got := listOf(t, w.dataset.Name()); len(got[0].Holds) != 0 {
		t.Errorf("%+v is held for a forgotten target", got[0])
	}
	if marks, err := output(t.Context(), "zfs", "list", "-H", "-t", "bookmark", "-o", "name", w.dataset.Name()); err != nil || len(marks) != 1 {
		t.Errorf("the bookmarks are %q, %v", marks, err)
	}
	if err := Forget(t.Context(), w.dataset.Name(), w.target(slow)); !errors.Is(err, ErrNotFound) {
		t.Errorf("forgotten twice: %v", err)
	}
	if !strings.HasSuffix(h.lastPush, " dir:"+fast) {
		t.Errorf("the last push is %q", h.lastPush)
	}
}

// TestPushWithoutRights is a user who may send and nothing else.
func TestPushWithoutRights(t *testing.T) {
	w := newBackupWorld(t)
	w.snapshot()
	for command, text := range map[string]string{
		"zfs hold": "cannot hold: permission denied", "zfs bookmark": "cannot create bookmark: permission denied",
		"zfs set " + PropLastPush: "cannot set property: permission denied",
	} {
		w.Fail(command, text, 100)
	}
	var notes []string
	r, err := Push(t.Context(), w.dataset.Name(), w.target("tank/backups/tarn"), TransferOptions{Note: func(s string) { notes = append(notes, s) }})
	if err != nil || len(r.Sent) != 1 || len(notes) != 3 {
		t.Errorf("result %+v, %v, notes %q", r, err, notes)
	}
}

func TestPushErrors(t *testing.T) {
	w := newBackupWorld(t)
	w.snapshot()
	w.push("tank/backups/tarn")
	for name, c := range map[string]struct {
		command, text string
		want          error
		words         string
	}{
		"full":            {"zfs receive", "cannot receive incremental stream: out of space", ErrNoSpace, "make room"},
		"quota":           {"zfs receive", "cannot receive new filesystem stream: destination x space quota exceeded.", ErrNoSpace, "quota"},
		"rights":          {"zfs receive", "cannot receive incremental stream: permission denied", ErrPermission, "zfs allow"},
		"suspended":       {"zfs receive", "cannot receive: pool I/O is currently suspended", ErrSuspended, "zpool clear"},
		"key":             {"zfs receive", "cannot receive incremental stream: inherited key must be loaded", nil, "zfs load-key"},
		"iv set":          {"zfs receive", "cannot receive incremental stream: IV set guid mismatch. See the man page", ErrMixed, "new dataset"},
		"two pushes":      {"zfs receive", `cannot receive incremental stream: destination x contains partially-complete state from "zfs receive -s".`, ErrUnderWay, "run it again"},
		"made by another": {"zfs receive", "cannot receive new filesystem stream: destination 'x' exists\nmust specify -F to overwrite it", ErrUnderWay, "is under way"},
		"busy":            {"zfs receive", "cannot receive incremental stream: dataset is busy", ErrUnderWay, "wait for its end"},
		"written to":      {"zfs receive", "cannot receive incremental stream: destination x has been modified\nsince most recent snapshot", ErrDiverged, "modified"},
		"mark":            {"zfs set tarn-kv:label", "cannot set property: permission denied", ErrPermission, "not marked"},
	} {
		t.Run(name, func(t *testing.T) {
			newest := w.snapshot()
			w.Fail(c.command, c.text, 1)
			_, err := Push(t.Context(), w.dataset.Name(), w.target("tank/backups/tarn"), TransferOptions{})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "-F") {
				t.Errorf("told as: %v", err)
			}
			if r := w.push("tank/backups/tarn"); r.Newest != newest {
				t.Errorf("result of the next push %+v", r)
			}
		})
	}
	if got := listOf(t, "tank/backups/tarn"); len(got) != w.made {
		t.Errorf("at the target are %+v", got)
	}
}

// TestTokenGone destroys the snapshot of a transfer that was cut off.
func TestTokenGone(t *testing.T) {
	ssh := fakeSSH(t)
	w := newBackupWorld(t)
	gone := w.snapshot()
	target := w.target("ssh://nas/tank/backups/tarn")
	put(t, ssh, "cut", strconv.Itoa(5000))
	if _, err := Push(t.Context(), w.dataset.Name(), target, TransferOptions{}); err == nil {
		t.Fatal("the push was not interrupted")
	}
	os.Remove(filepath.Join(ssh, "cut"))
	if err := w.dataset.Destroy(t.Context(), gone); !errors.Is(err, ErrBusy) {
		t.Fatalf("the snapshot of an interrupted transfer is not held: %v", err)
	}
	if err := w.dataset.Release(t.Context(), gone, target.HoldTag()); err != nil {
		t.Fatal(err)
	}
	if err := w.dataset.Destroy(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	newest := w.snapshot()
	if _, err := Push(t.Context(), w.dataset.Name(), target, TransferOptions{}); !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "--abort-resume") {
		t.Errorf("told as: %v", err)
	}
	if r, err := Push(t.Context(), w.dataset.Name(), target, TransferOptions{AbortResume: true}); err != nil || r.Newest != newest {
		t.Errorf("result %+v, %v", r, err)
	}
}

// TestPushOvertaken has a second push finish at each point where the first has looked
// at the target and not sent yet: nobody advises to roll back what that one has sent.
func TestPushOvertaken(t *testing.T) {
	w := newBackupWorld(t)
	w.snapshot()
	w.push("tank/backups/tarn")
	for _, when := range []string{"after reading", "after planning"} {
		newest := w.snapshot()
		r := replication{opts: TransferOptions{}, book: noBook{}}
		if err := r.read(t.Context(), host{}, host{}, w.dataset.Name(), "tank/backups/tarn"); err != nil {
			t.Fatal(err)
		}
		steps, err := planSteps(&r.from, &r.to, func(s state) (int64, error) { return r.writtenSince(t.Context(), s) })
		if err != nil || len(steps) != 1 {
			t.Fatal(steps, err)
		}
		w.push("tank/backups/tarn")
		if when == "after reading" {
			err = r.run(t.Context())
		} else {
			err = r.step(t.Context(), steps[0], 1, 1)
		}
		if !errors.Is(err, ErrUnderWay) || strings.Contains(err.Error(), "rollback") {
			t.Errorf("%s: %v", when, err)
		}
		if r := w.push("tank/backups/tarn"); r.Newest != newest {
			t.Errorf("result of the next push %+v", r)
		}
	}
}

// TestVerifyDiverged verifies targets that a push refuses.
func TestVerifyDiverged(t *testing.T) {
	w := newBackupWorld(t)
	w.snapshot()
	const target = "tank/backups/tarn"
	w.push(target)
	verify := func() BackupReport {
		t.Helper()
		report, err := VerifyBackup(t.Context(), w.target(target), w.dataset.Name(), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	w.snapshot()
	if r := verify(); len(r.Findings) != 0 || len(r.Notes) != 1 {
		t.Errorf("a target that is behind: %+v", r)
	}
	lines, err := output(t.Context(), "zfs", "get", "-Ho", "value", "mountpoint", target)
	if err != nil {
		t.Fatal(err)
	}
	put(t, lines[0][0], "data", "of somebody else")
	if _, err := Push(t.Context(), w.dataset.Name(), w.target(target), TransferOptions{}); !errors.Is(err, ErrDiverged) {
		t.Fatalf("push: %v", err)
	}
	if r := verify(); len(r.Findings) != 1 || !strings.Contains(r.Findings[0], ErrDiverged.Error()) {
		t.Errorf("a target that was written to: %+v", r)
	}
	if r, err := VerifyBackup(t.Context(), w.target(target), "", VerifyOptions{}); err != nil || len(r.Findings) != 0 {
		t.Errorf("without a source: %+v, %v", r, err)
	}
}

// TestAbortWhileReceiving gives up what is not interrupted at all.
func TestAbortWhileReceiving(t *testing.T) {
	ssh := fakeSSH(t)
	w := newBackupWorld(t)
	w.snapshot()
	target := w.target("ssh://nas/tank/backups/tarn")
	put(t, ssh, "cut", "4000")
	if _, err := Push(t.Context(), w.dataset.Name(), target, TransferOptions{}); err == nil {
		t.Fatal("the push was not interrupted")
	}
	w.Fail("zfs receive -A", "cannot receive: dataset is busy", 1)
	if _, err := Push(t.Context(), w.dataset.Name(), target, TransferOptions{AbortResume: true}); !errors.Is(err, ErrUnderWay) {
		t.Errorf("told as: %v", err)
	}
}
