//go:build zfs

package zfs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// pair is a source with a dataset, and another pool for backups.
type pair struct {
	t        *testing.T
	rng      *rand.ChaCha8
	from, to *zfstest.Pool
	source   string // dataset
	dir      string // where it is mounted
	target   string // dataset that does not exist yet
	of       *Dataset
	made     int
}

func newPair(t *testing.T, args ...string) *pair {
	seed := [32]byte{}
	copy(seed[:], fmt.Sprint(time.Now().UnixNano()))
	t.Logf("seed %q", strings.TrimRight(string(seed[:]), "\x00"))
	p := &pair{t: t, rng: rand.NewChaCha8(seed), from: zfstest.New(t), to: zfstest.New(t)}
	p.source = p.from.Dataset(t, "tarn", append([]string{"-o", "recordsize=16K"}, args...)...)
	p.dir = p.from.Path("tarn")
	p.target = p.to.Dataset(t, "backups") + "/tarn"
	var err error
	if p.of, err = OpenDataset(t.Context(), p.source, p.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pair) n(most int) int { return int(p.rng.Uint64() % uint64(most)) }

// write puts about n random bytes into the source.
func (p *pair) write(n int) {
	p.t.Helper()
	data := make([]byte, n)
	p.rng.Read(data)
	put(p.t, p.dir, fmt.Sprintf("file%d", p.n(6)), string(data))
}

// snapshot makes one of ours.
func (p *pair) snapshot() string {
	p.t.Helper()
	p.made++
	s, err := p.of.Create(p.t.Context(), CreateOptions{
		Time: someTime.Add(time.Duration(p.made) * time.Second), Revision: int64(p.made), StoreID: "0123456789abcdef0123456789abcdef", Version: "test", Label: "it's a test",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Name
}

func (p *pair) parse(s string) Target {
	p.t.Helper()
	target, err := ParseTarget(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return target
}

func (p *pair) push(target string) TransferResult {
	p.t.Helper()
	r, err := Push(p.t.Context(), p.source, p.parse(target), TransferOptions{Note: func(s string) { p.t.Errorf("note: %s", s) }})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *pair) refused(target string, want error, words ...string) {
	p.t.Helper()
	before := zfstest.Run(p.t, "zfs", "list", "-rHp", "-t", "all", "-o", "name,guid", p.to.Name)
	_, err := Push(p.t.Context(), p.source, p.parse(target), TransferOptions{})
	if !errors.Is(err, want) {
		p.t.Fatalf("got %v, want %v", err, want)
	}
	p.t.Logf("the message: %v", err)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			p.t.Errorf("the message has no %q: %v", w, err)
		}
	}
	if after := zfstest.Run(p.t, "zfs", "list", "-rHp", "-t", "all", "-o", "name,guid", p.to.Name); after != before {
		p.t.Errorf("a refused push changed the target:\n%s\nwas:\n%s", after, before)
	}
}

// snapshotContent is a hash of each file in a snapshot.
func snapshotContent(t *testing.T, full string) map[string]string {
	t.Helper()
	point := t.TempDir()
	zfstest.Run(t, "mount", "-t", "zfs", "-o", "ro", full, point)
	defer zfstest.Run(t, "umount", point)
	sums := map[string]string{}
	err := filepath.WalkDir(point, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		_, err = io.Copy(h, f)
		sums[strings.TrimPrefix(path, point)] = fmt.Sprintf("%x", h.Sum(nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// same holds the snapshots of two datasets against each other: names, properties,
// files. names are those that must be in copied, in this order.
func same(t *testing.T, source, copied string, names []string) {
	t.Helper()
	sameFrom(t, source, copied, names, 0)
}

// sameFrom is same, with the files of names[first:] only.
func sameFrom(t *testing.T, source, copied string, names []string, first int) {
	t.Helper()
	h, err := readHistory(t.Context(), host{}, copied)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range h.snapshots {
		got = append(got, s.name)
		if s.ours == nil || s.ours.StoreID == "" || s.ours.Label != "it's a test" || s.ours.Version != "test" {
			t.Errorf("%s has lost its properties: %+v", s.name, s.ours)
		}
	}
	if !slices.Equal(got, names) {
		t.Fatalf("%s has %q, want %q", copied, got, names)
	}
	from, err := readHistory(t.Context(), host{}, source)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range from.snapshots {
		i := slices.Index(names, s.name)
		if i < 0 {
			continue
		}
		if h.snapshots[i].guid != s.guid {
			t.Errorf("%s has another GUID", s.name)
		}
		if i < first {
			continue
		}
		if a, b := snapshotContent(t, source+"@"+s.name), snapshotContent(t, copied+"@"+s.name); !maps.Equal(a, b) {
			t.Errorf("%s differs: %v and %v", s.name, a, b)
		}
	}
	if h.mountpoint != "" || h.canmount != "noauto" || !h.readonly {
		t.Errorf("%s is mounted at %q, canmount=%s, readonly %v", copied, h.mountpoint, h.canmount, h.readonly)
	}
}

func TestZFSPush(t *testing.T) {
	p := newPair(t)
	p.write(300_000)
	names := []string{p.snapshot()}
	zfstest.Run(t, "zfs", "snapshot", p.source+"@autosnap_2026-11-30_12:00:00_daily")
	p.write(200_000)
	names = append(names, p.snapshot(), p.snapshot())

	plan, err := Push(t.Context(), p.source, p.parse(p.target), TransferOptions{DryRun: true})
	if err != nil || len(plan.Sent) != 3 || plan.Sent[0].SizeBytes < 300_000 || plan.Sent[1].From != names[0] {
		t.Errorf("the dry run says %+v, %v", plan, err)
	}
	if out, err := zfstest.Try("zfs", "list", p.target); err == nil {
		t.Fatalf("the dry run made %s", out)
	}
	r := p.push(p.target)
	if len(r.Sent) != 3 || r.Sent[0].From != "" || r.Newest != names[2] {
		t.Errorf("result %+v", r)
	}
	same(t, p.source, p.target, names)
	if r := p.push(p.target); len(r.Sent) != 0 || r.Newest != names[2] {
		t.Errorf("nothing was new, and the result is %+v", r)
	}
	records, err := PushRecords(t.Context(), p.source)
	if err != nil || len(records) != 1 || records[0].Target != p.target || records[0].Snapshot != names[2] {
		t.Errorf("records %+v, %v", records, err)
	}
	for _, name := range names {
		tag := p.parse(p.target).HoldTag()
		if held := strings.Contains(zfstest.Run(t, "zfs", "holds", "-H", p.source+"@"+name), tag); held != (name == names[2]) {
			t.Errorf("%s is held: %v", name, held)
		}
	}

	// The bookmark is enough to go on from.
	p.write(100_000)
	names = append(names, p.snapshot())
	zfstest.Run(t, "zfs", "release", p.parse(p.target).HoldTag(), p.source+"@"+names[2])
	for _, n := range names[:3] {
		zfstest.Run(t, "zfs", "destroy", p.source+"@"+n)
	}
	if r := p.push(p.target); len(r.Sent) != 1 || r.Sent[0].From != names[2] {
		t.Errorf("result %+v", r)
	}
	same(t, p.source, p.target, names)
	if marks := zfstest.Run(t, "zfs", "list", "-H", "-t", "bookmark", "-o", "name", p.source); marks != p.source+"#"+names[3] {
		t.Errorf("the bookmarks are %s", marks)
	}
	list, err := ListBackup(t.Context(), p.parse(p.target), p.source)
	if err != nil || len(list.Snapshots) != 4 || *list.Snapshots[0].AtSource || !*list.Snapshots[3].AtSource || list.Snapshots[3].Revision != 4 {
		t.Errorf("list %+v, %v", list, err)
	}
	report, err := VerifyBackup(t.Context(), p.parse(p.target), p.source, VerifyOptions{Deep: true})
	if err != nil || len(report.Findings) != 0 || report.Newest != names[3] || report.Snapshots != 4 {
		t.Errorf("report %+v, %v", report, err)
	}
}

// TestZFSPushMarksLater gives snapshots their properties that came without, as when a
// run ended between the two.
func TestZFSPushMarksLater(t *testing.T) {
	p := newPair(t)
	p.write(1000)
	names := []string{p.snapshot(), p.snapshot()}
	p.push(p.target)
	for _, prop := range []string{PropRevision, PropStoreID, PropLabel, PropVersion} {
		zfstest.Run(t, "zfs", "inherit", prop, p.target+"@"+names[1])
	}
	p.push(p.target)
	same(t, p.source, p.target, names)
}

func TestZFSPushRefused(t *testing.T) {
	p := newPair(t)
	p.refused(p.target, ErrNothingToSend, "tarn snapshot create")
	p.write(100_000)
	first := p.snapshot()

	t.Run("no pool", func(t *testing.T) { p.refused("nosuchpool/tarn", ErrNotFound, "import the pool") })
	t.Run("no parent", func(t *testing.T) { p.refused(p.to.Name+"/no/tarn", ErrNotFound, p.to.Name+"/no") })
	t.Run("itself", func(t *testing.T) {
		if _, err := Push(t.Context(), p.source, p.parse(p.source+"/x"), TransferOptions{}); err == nil {
			t.Error("a push into the source itself is allowed")
		}
	})
	t.Run("mounted", func(t *testing.T) {
		p.refused(p.to.Dataset(t, "data"), ErrTargetInUse, "mounted at")
	})
	t.Run("empty", func(t *testing.T) {
		p.refused(p.to.Dataset(t, "empty", "-o", "canmount=off"), ErrTargetInUse, "has no snapshot")
	})
	t.Run("other history", func(t *testing.T) {
		other := p.to.Dataset(t, "other", "-o", "canmount=noauto")
		zfstest.Run(t, "zfs", "snapshot", "-o", PropRevision+"=1", other+"@"+first)
		p.refused(other, ErrDiverged, "no snapshot in common", "zfs rename")
	})
	p.push(p.target)
	t.Run("written to", func(t *testing.T) {
		zfstest.Run(t, "zfs", "set", "readonly=off", p.target)
		zfstest.Run(t, "zfs", "mount", p.target)
		p.refused(p.target, ErrTargetInUse, "mounted at", "zfs unmount")
		put(t, zfstest.Run(t, "zfs", "get", "-Ho", "value", "mountpoint", p.target), "stray", "x")
		zfstest.Run(t, "zfs", "unmount", p.target)
		p.snapshot()
		p.refused(p.target, ErrDiverged, first, "zfs rollback -r "+p.target+"@"+first)
		zfstest.Run(t, "zfs", "snapshot", p.target+"@theirs")
		p.refused(p.target, ErrDiverged, "theirs")
		// What the message says helps.
		zfstest.Run(t, "zfs", "rollback", "-r", p.target+"@"+first)
		zfstest.Run(t, "zfs", "set", "readonly=on", p.target)
		p.push(p.target)
	})
	t.Run("somebody else's snapshot of it is in nobody's way", func(t *testing.T) {
		zfstest.Run(t, "zfs", "snapshot", p.target+"@autosnap_there")
		p.write(1000)
		newest := p.snapshot()
		if r := p.push(p.target); r.Newest != newest {
			t.Errorf("result %+v", r)
		}
	})
	t.Run("full", func(t *testing.T) {
		small := p.to.Dataset(t, "small", "-o", "quota=2M", "-o", "canmount=off")
		p.write(6_000_000)
		p.snapshot()
		_, err := Push(t.Context(), p.source, p.parse(small+"/tarn"), TransferOptions{})
		if !errors.Is(err, ErrNoSpace) {
			t.Fatalf("got %v", err)
		}
		t.Logf("the message: %v", err)
		zfstest.Run(t, "zfs", "set", "quota=none", small)
		p.push(small + "/tarn")
		p.clean(small + "/tarn")
	})
	t.Run("pool full", func(t *testing.T) {
		tiny := zfstest.NewSized(t, 64<<20)
		p.write(50_000_000)
		p.snapshot()
		_, err := Push(t.Context(), p.source, p.parse(tiny.Dataset(t, "b", "-o", "canmount=off")+"/tarn"), TransferOptions{})
		if !errors.Is(err, ErrNoSpace) {
			t.Fatalf("got %v", err)
		}
		t.Logf("the message: %v", err)
	})
}

// clean compares a target with the source.
func (p *pair) clean(target string) {
	p.t.Helper()
	from, err := readHistory(p.t.Context(), host{}, p.source)
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, s := range from.ours() {
		names = append(names, s.name)
	}
	same(p.t, p.source, target, names)
}

func TestZFSPushEncrypted(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	put(t, filepath.Dir(key), "key", "a passphrase\n")
	p := newPair(t, "-o", "encryption=on", "-o", "keyformat=passphrase", "-o", "keylocation=file://"+key)
	p.write(300_000)
	p.snapshot()
	p.push(p.target)
	p.write(300_000)
	p.snapshot()
	p.push(p.target)
	if v := zfstest.Run(t, "zfs", "get", "-Ho", "value", "keystatus", p.target); v != "unavailable" {
		t.Errorf("the key at the target is %s: it was not sent raw", v)
	}
	t.Run("into a directory and back", func(t *testing.T) {
		target := p.parse("dir:" + filepath.Join(t.TempDir(), "b"))
		p.push(target.String())
		back := p.to.Name + "/back"
		if _, err := Pull(t.Context(), target, "", back, TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		zfstest.Run(t, "zfs", "load-key", "-L", "file://"+key, back)
		p.clean(back)
	})
	t.Run("from the target and back", func(t *testing.T) {
		back := p.to.Name + "/back2"
		if _, err := Pull(t.Context(), p.parse(p.target), "", back, TransferOptions{}); err != nil {
			t.Fatal(err)
		}
		zfstest.Run(t, "zfs", "load-key", "-L", "file://"+key, back)
		p.clean(back)
	})
	zfstest.Run(t, "zfs", "load-key", "-L", "file://"+key, p.target)
	p.clean(p.target)

	t.Run("not mixed", func(t *testing.T) {
		plain := p.to.Name + "/plain"
		zfstest.Run(t, "sh", "-c", "zfs send "+p.source+"@"+mustOurs(t, p.source)[0]+" | zfs receive -u "+plain)
		p.refused(plain, ErrMixed, "raw")
		// A stream of the other kind makes another state of it, at the target only.
		ours := mustOurs(t, p.source)
		mixed := p.to.Name + "/mixed"
		zfstest.Run(t, "sh", "-c", fmt.Sprintf("zfs send -w %s@%s | zfs receive -u %s", p.source, ours[0], mixed))
		zfstest.Run(t, "zfs", "load-key", "-L", "file://"+key, mixed)
		zfstest.Run(t, "sh", "-c", fmt.Sprintf("zfs send -i @%s %s@%s | zfs receive -u %s", ours[0], p.source, ours[1], mixed))
		p.refused(mixed, ErrMixed, "raw")
	})
}

func mustOurs(t *testing.T, dataset string) (names []string) {
	t.Helper()
	h, err := readHistory(t.Context(), host{}, dataset)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.ours() {
		names = append(names, s.name)
	}
	return names
}

// cutAt is a context that ends when so many bytes were sent.
func cutAt(t *testing.T, bytes int64) (context.Context, func(Progress)) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, func(p Progress) {
		if p.SentBytes >= bytes {
			cancel()
		}
	}
}
