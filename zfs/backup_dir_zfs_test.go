//go:build zfs

package zfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

func TestZFSPushDir(t *testing.T) {
	p := newPair(t)
	dir := filepath.Join(t.TempDir(), "b")
	p.write(500_000)
	names := []string{p.snapshot()}
	zfstest.Run(t, "zfs", "snapshot", p.source+"@theirs")
	p.write(300_000)
	names = append(names, p.snapshot())
	if plan, err := Push(t.Context(), p.source, p.parse("dir:"+dir), TransferOptions{DryRun: true}); err != nil || len(plan.Sent) != 2 {
		t.Errorf("the dry run says %+v, %v", plan, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the dry run made the directory")
	}
	p.push("dir:" + dir)
	p.write(200_000)
	names = append(names, p.snapshot())
	for _, n := range names[:2] { // the bookmark is enough
		zfstest.Run(t, "zfs", "destroy", p.source+"@"+n)
	}
	p.push(dir)
	if r := p.push(dir); len(r.Sent) != 0 || r.Newest != names[2] {
		t.Errorf("nothing was new, and the result is %+v", r)
	}
	report, err := VerifyBackup(t.Context(), p.parse(dir), "", VerifyOptions{Deep: true})
	if err != nil || len(report.Findings) != 0 || len(report.Notes) != 0 || report.Snapshots != 3 || report.Newest != names[2] {
		t.Errorf("report %+v, %v", report, err)
	}
	list, err := ListBackup(t.Context(), p.parse(dir), p.source)
	if err != nil || len(list.Snapshots) != 3 || *list.Snapshots[0].AtSource || !*list.Snapshots[2].AtSource || list.Snapshots[2].Revision != 3 {
		t.Errorf("list %+v, %v", list, err)
	}

	back := p.to.Name + "/back"
	if _, err := Pull(t.Context(), p.parse(dir), names[1], back, TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, p.source, back, names[:2])
	if _, err := Pull(t.Context(), p.parse(dir), "", back, TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, p.source, back, names)
	if _, err := Pull(t.Context(), p.parse(dir), "", p.to.Dataset(t, "full", "-o", "canmount=off"), TransferOptions{}); !errors.Is(err, ErrTargetInUse) {
		t.Errorf("pull into a dataset of something else: %v", err)
	}

	// Plain zfs takes the files as they are.
	plain := p.to.Name + "/plain"
	zfstest.Run(t, "sh", "-c", "set -e; for f in "+dir+"/*.zfs; do zfs receive -u "+plain+" <$f; done")
	if a, b := snapshotContent(t, p.source+"@"+names[2]), snapshotContent(t, plain+"@"+names[2]); len(a) == 0 || len(a) != len(b) {
		t.Errorf("plain zfs receive made %v of %v", b, a)
	}

	t.Run("other source", func(t *testing.T) {
		q := newPair(t)
		q.snapshot()
		_, err := Push(t.Context(), q.source, q.parse(dir), TransferOptions{})
		if !errors.Is(err, ErrDiverged) {
			t.Errorf("got %v", err)
		}
		t.Logf("the message: %v", err)
	})
}

// TestZFSPushDirCut ends pushes into a directory at random points.
func TestZFSPushDirCut(t *testing.T) {
	p := newPair(t)
	dir := filepath.Join(t.TempDir(), "b")
	target := p.parse(dir)
	var names []string
	for range 10 {
		p.write(1_000_000 + p.n(1_000_000))
		names = append(names, p.snapshot())
		ctx, progress := cutAt(t, int64(1+p.n(1_000_000)))
		if _, err := Push(ctx, p.source, target, TransferOptions{Progress: progress}); err == nil {
			t.Error("the push was not interrupted")
		}
		if p.n(2) == 0 {
			p.push(dir)
		}
	}
	p.push(dir)
	report, err := VerifyBackup(t.Context(), target, "", VerifyOptions{Deep: true})
	if err != nil || len(report.Findings)+len(report.Notes) != 0 || report.Snapshots != 10 {
		t.Fatalf("report %+v, %v", report, err)
	}
	back := p.to.Name + "/back"
	for range 5 {
		ctx, progress := cutAt(t, int64(1+p.n(1_000_000)))
		if _, err := Pull(ctx, target, "", back, TransferOptions{Progress: progress}); err == nil {
			break
		}
	}
	if _, err := Pull(t.Context(), target, "", back, TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, p.source, back, names)
}

// TestZFSDirDamage damages stream files in ways that verify and pull must notice.
func TestZFSDirDamage(t *testing.T) {
	p := newPair(t)
	dir := filepath.Join(t.TempDir(), "b")
	p.write(300_000)
	first := p.snapshot()
	p.write(300_000)
	p.snapshot()
	p.push(dir)
	files, err := filepath.Glob(filepath.Join(dir, "0002-*.zfs"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(string(whole))
	flipped[len(flipped)/2+p.n(len(flipped)/4)] ^= 1 << p.n(8)
	for name, content := range map[string][]byte{"flipped": flipped, "cut": whole[:len(whole)-1-p.n(len(whole)-1)], "empty": {}, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(files[0], content, 0o600); err != nil {
				t.Fatal(err)
			}
			if content == nil {
				os.Remove(files[0])
			}
			report, err := VerifyBackup(t.Context(), p.parse(dir), "", VerifyOptions{})
			if err != nil || len(report.Findings) != 1 || report.Newest != first {
				t.Errorf("report %+v, %v", report, err)
			}
			back := p.to.Name + "/" + name
			if _, err := Pull(t.Context(), p.parse(dir), "", back, TransferOptions{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("pull: %v", err)
			}
			if got := mustOurs(t, back); len(got) != 1 || got[0] != first {
				t.Errorf("pulled %q", got)
			}
		})
	}
	if err := os.WriteFile(files[0], flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("zstream", func(t *testing.T) {
		f := StreamFile{File: filepath.Base(files[0])}
		in, err := os.Open(files[0])
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := f.dump(t.Context(), in); !errors.Is(err, ErrDamaged) {
			t.Errorf("zstream found nothing: %v", err)
		}
	})
}
