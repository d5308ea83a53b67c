package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

var testID = [16]byte{1, 2, 3}

// payload is the content that the frame seq has in all tests.
func payload(seq uint64) []byte {
	rnd := rand.New(rand.NewPCG(seq, 1))
	b := make([]byte, 1+rnd.IntN(90))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recovered holds what a log replayed, and checks that it is what was appended.
type recovered struct {
	t    testing.TB
	seqs []uint64
}

func (r *recovered) replay(seq uint64, p []byte) error {
	if !bytes.Equal(p, payload(seq)) {
		r.t.Errorf("frame %d has another payload than it was given", seq)
	}
	r.seqs = append(r.seqs, seq)
	return nil
}

// want checks that the frames first to last were replayed.
func (r *recovered) want(first, last uint64) {
	r.t.Helper()
	for i, seq := range r.seqs {
		if seq != first+uint64(i) {
			r.t.Fatalf("replayed %v, want %d to %d", r.seqs, first, last)
		}
	}
	if uint64(len(r.seqs)) != last+1-first {
		r.t.Fatalf("replayed %d frames, want %d to %d", len(r.seqs), first, last)
	}
}

func open(t testing.TB, o Options) (*Log, *recovered) {
	t.Helper()
	r := &recovered{t: t}
	l, err := Open(o, r.replay)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l, r
}

// appendTo appends frames until the newest is number last.
func appendTo(t testing.TB, l *Log, last uint64) {
	t.Helper()
	for seq := l.LastSeq() + 1; seq <= last; seq++ {
		got, err := l.Append(payload(seq))
		must(t, err)
		if got != seq {
			t.Fatalf("frame got number %d, want %d", got, seq)
		}
	}
}

func testOptions(t testing.TB) Options {
	return Options{Dir: filepath.Join(t.TempDir(), "wal"), StoreID: testID, SegmentSize: 1000}
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	must(t, err)
	return files
}

func TestRoundTripOverSegments(t *testing.T) {
	o := testOptions(t)
	l, r := open(t, o)
	r.want(1, 0)
	appendTo(t, l, 50)
	must(t, l.Close())
	if n := len(segmentFiles(t, o.Dir)); n < 3 {
		t.Fatalf("%d segments: the test wants more", n)
	}
	l, r = open(t, o)
	r.want(1, 50)
	appendTo(t, l, 60)
	must(t, l.Close())
	o.AfterSeq = 33
	l, r = open(t, o)
	r.want(34, 60)
	if l.LastSeq() != 60 {
		t.Errorf("last is %d", l.LastSeq())
	}
}

func TestAppendFrameLeavesThePayload(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	buf := append(make([]byte, FrameHeader), payload(1)...)
	_, err := l.AppendFrame(buf)
	must(t, err)
	if !bytes.Equal(buf[FrameHeader:], payload(1)) {
		t.Error("the payload was changed")
	}
	must(t, l.Close())
	_, r := open(t, o)
	r.want(1, 1)
}

func TestEmptyAndLargePayloads(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	large := bytes.Repeat([]byte("tarn"), 5000)
	for _, p := range [][]byte{nil, large, nil, large, []byte("x")} {
		_, err := l.Append(p)
		must(t, err)
	}
	must(t, l.Close())
	var lengths []int
	l, err := Open(o, func(_ uint64, p []byte) error { lengths = append(lengths, len(p)); return nil })
	must(t, err)
	defer l.Close()
	if fmt.Sprint(lengths) != "[0 20000 0 20000 1]" {
		t.Errorf("replayed lengths %v", lengths)
	}
}

func TestReplayedPayloadsMayBeKept(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	appendTo(t, l, 30)
	must(t, l.Close())
	var kept [][]byte
	l, err := Open(o, func(_ uint64, p []byte) error { kept = append(kept, p); return nil })
	must(t, err)
	defer l.Close()
	for i, p := range kept {
		if !bytes.Equal(p, payload(uint64(i+1))) {
			t.Fatalf("payload %d was overwritten", i+1)
		}
	}
}

func TestReplayErrorEndsOpen(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	appendTo(t, l, 3)
	must(t, l.Close())
	stop := errors.New("stop")
	_, err := Open(o, func(seq uint64, _ []byte) error {
		if seq == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestTrim(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	appendTo(t, l, 60)
	size := l.Size()
	must(t, l.TrimBefore(30))
	if l.Size() >= size {
		t.Error("nothing was trimmed")
	}
	appendTo(t, l, 70)
	must(t, l.Close())
	first, ok := parseSegmentName(filepath.Base(segmentFiles(t, o.Dir)[0]))
	if !ok || first > 31 || first == 1 {
		t.Errorf("the log begins with frame %d", first)
	}
	o.AfterSeq = 30
	l, r := open(t, o)
	r.want(31, 70)
	must(t, l.TrimBefore(70))
	if n := len(segmentFiles(t, o.Dir)); n != 1 {
		t.Errorf("%d segments after all was trimmed", n)
	}
	appendTo(t, l, 71)
	must(t, l.Close())
	o.AfterSeq = 0
	if _, err := Open(o, r.replay); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a log without its first frames: got %v", err)
	}
}

func TestTrimWhileAppending(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	var trims sync.WaitGroup
	for i := range 20 {
		appendTo(t, l, uint64(10*(i+1)))
		trims.Go(func() {
			if err := l.TrimBefore(uint64(10 * i)); err != nil {
				t.Error(err)
			}
			l.Size()
		})
	}
	trims.Wait()
	must(t, l.Close())
	o.AfterSeq = 190
	_, r := open(t, o)
	r.want(191, 200)
}

func TestTreeNewerThanLog(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	appendTo(t, l, 20)
	must(t, l.Close())
	o.AfterSeq = 100
	l, r := open(t, o)
	r.want(101, 100)
	appendTo(t, l, 105)
	must(t, l.Close())
	_, r = open(t, o)
	r.want(101, 105)
	o.AfterSeq = 50
	if _, err := Open(o, r.replay); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "51 to 100 are missing") {
		t.Errorf("a gap after the tree's last frame: got %v", err)
	}
}

func TestForeignAndNewerSegments(t *testing.T) {
	o := testOptions(t)
	l, r := open(t, o)
	appendTo(t, l, 3)
	must(t, l.Close())
	other := o
	other.StoreID = [16]byte{9}
	if _, err := Open(other, r.replay); !errors.Is(err, ErrForeign) {
		t.Errorf("foreign: got %v", err)
	}
	file := segmentFiles(t, o.Dir)[0]
	b, err := os.ReadFile(file)
	must(t, err)
	binary.LittleEndian.PutUint32(b[8:], formatVersion+1)
	reseal(b)
	must(t, os.WriteFile(file, b, 0o600))
	if _, err := Open(o, r.replay); !errors.Is(err, ErrVersion) {
		t.Errorf("newer version: got %v", err)
	}
}

func TestNoStoreID(t *testing.T) {
	o := testOptions(t)
	o.StoreID = [16]byte{}
	if _, err := Open(o, nil); err == nil {
		t.Error("a log without a store ID was opened")
	}
}

func TestReadOnly(t *testing.T) {
	o := testOptions(t)
	ro := o
	ro.ReadOnly, ro.StoreID = true, [16]byte{}
	l, r := open(t, ro)
	r.want(1, 0)
	if _, err := os.Stat(o.Dir); !os.IsNotExist(err) {
		t.Errorf("reading made the directory: %v", err)
	}
	must(t, l.Close())
	l, _ = open(t, o)
	appendTo(t, l, 25)
	before := dirState(t, o.Dir)
	l, r = open(t, ro)
	r.want(1, 25)
	if l.LastSeq() != 25 {
		t.Errorf("last is %d", l.LastSeq())
	}
	if _, err := l.Append(nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("append: got %v", err)
	}
	if err := l.TrimBefore(25); !errors.Is(err, ErrReadOnly) {
		t.Errorf("trim: got %v", err)
	}
	if dirState(t, o.Dir) != before {
		t.Error("reading changed the log")
	}
}

func TestClosed(t *testing.T) {
	l, _ := open(t, testOptions(t))
	must(t, l.Close())
	must(t, l.Close())
	if _, err := l.Append(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestSyncsAreObserved(t *testing.T) {
	o := testOptions(t)
	var n int
	o.ObserveSync = func(d time.Duration) { n++ }
	l, _ := open(t, o)
	before := n
	appendTo(t, l, 1) // makes a segment, too
	if n != before+2 {
		t.Errorf("%d syncs for a new segment and a frame", n-before)
	}
}

// dirState is the names and contents in a directory.
func dirState(t testing.TB, dir string) string {
	t.Helper()
	names, err := vfs.OS.List(dir)
	must(t, err)
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		fmt.Fprintln(&all, name, len(b))
		all.Write(b)
	}
	return all.String()
}
