package wal

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// simOptions are for a log in a simulated file system of the given type.
func simOptions(t testing.TB, fsType string) (Options, *simfs.FS) {
	t.Helper()
	root := t.TempDir()
	sim := simOver(t, root)
	sim.SetType(fsType)
	return Options{FS: sim, Dir: filepath.Join(root, "wal"), StoreID: testID, SegmentSize: 1000}, sim
}

// simOver is a simulated file system over what is in root. Where nothing is to
// fail, it spares the test the real syncs.
func simOver(t testing.TB, root string) *simfs.FS {
	t.Helper()
	sim, err := simfs.New(root)
	must(t, err)
	return sim
}

func eachType(t *testing.T, test func(t *testing.T, fsType string)) {
	for _, fsType := range []string{"ext4", "zfs"} {
		t.Run(fsType, func(t *testing.T) { test(t, fsType) })
	}
}

// TestFullDiskIsSurvived lets the file system be full at each number of bytes:
// within a frame, and within a new segment.
func TestFullDiskIsSurvived(t *testing.T) {
	eachType(t, func(t *testing.T, fsType string) {
		refused := 0
		for free := int64(0); free < 2500; free += 7 {
			o, sim := simOptions(t, fsType)
			l, _ := open(t, o)
			sim.SetFree(free)
			for seq := uint64(1); seq <= 40; seq++ {
				_, err := l.Append(payload(seq))
				if errors.Is(err, ErrNoSpace) {
					refused++
					break
				}
				must(t, err)
			}
			good := l.LastSeq()
			if _, err := l.Append(bytes.Repeat([]byte("x"), 3000)); !errors.Is(err, ErrNoSpace) {
				t.Fatalf("%d free: a frame larger than what is left: got %v", free, err)
			}
			// What is on the disk now is a whole log.
			report, err := Check(o, nil)
			must(t, err)
			if report.LastSeq != good || report.TornBytes != 0 || report.Problems != nil {
				t.Fatalf("%d free: %+v, want %d frames", free, report, good)
			}
			sim.SetFree(-1)
			appendTo(t, l, good+20)
			must(t, l.Close())
			l, r := open(t, o)
			r.want(1, good+20)
			must(t, l.Close())
		}
		if refused == 0 {
			t.Error("no frame was ever refused")
		}
	})
}

// TestNoSpaceInPreallocated is a write that is refused halfway in space that
// was preallocated.
func TestNoSpaceInPreallocated(t *testing.T) {
	o, sim := simOptions(t, "ext4")
	l, _ := open(t, o)
	appendTo(t, l, 5)
	size := l.Size()
	sim.SetHook(func(op simfs.Op) error {
		if op.Kind == simfs.Write {
			return &simfs.ShortWrite{N: 13, Err: syscall.EDQUOT}
		}
		return nil
	})
	if _, err := l.Append(payload(6)); !errors.Is(err, ErrNoSpace) || !errors.Is(err, syscall.EDQUOT) {
		t.Fatalf("got %v", err)
	}
	sim.SetHook(nil)
	if l.Size() != size {
		t.Errorf("size is %d, was %d", l.Size(), size)
	}
	appendTo(t, l, 7)
	must(t, l.Close())
	_, r := open(t, o)
	r.want(1, 7)
}

func TestTooLarge(t *testing.T) {
	l, _ := open(t, testOptions(t))
	// The pages are never touched.
	if _, err := l.AppendFrame(make([]byte, FrameHeader+MaxPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	appendTo(t, l, 1)
}

// TestAnyOtherFailureIsFinal fails each operation in turn. An acknowledged
// frame stays, and a log that failed takes no frame again.
func TestAnyOtherFailureIsFinal(t *testing.T) {
	eachType(t, func(t *testing.T, fsType string) {
		for n := 1; ; n++ {
			o, sim := simOptions(t, fsType)
			sim.FailAt(n, syscall.EIO)
			l, err := Open(o, func(uint64, []byte) error { return nil })
			var good uint64
			if err == nil {
				good, err = appendUntil(l, 30)
			}
			done := sim.Ops() < n
			if done != (err == nil) {
				t.Fatalf("operation %d failed, but the log said %v", n, err)
			}
			sim.SetHook(nil)
			if err != nil && l != nil {
				if !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
					t.Fatalf("operation %d: got %v", n, err)
				}
				if _, err := l.Append(nil); !errors.Is(err, ErrFailed) {
					t.Fatalf("operation %d: the log came back: %v", n, err)
				}
			}
			if l != nil {
				must(t, l.Close())
			}
			l, r := open(t, o)
			if l.LastSeq() < good || l.LastSeq() > good+1 {
				t.Fatalf("operation %d: %d frames acknowledged, %d found", n, good, l.LastSeq())
			}
			r.want(1, l.LastSeq())
			must(t, l.Close())
			if done {
				return
			}
		}
	})
}

// appendUntil appends frames up to number last, or the first error, and tells
// the newest that was acknowledged.
func appendUntil(l *Log, last uint64) (good uint64, err error) {
	for good = l.LastSeq(); good < last; good++ {
		if _, err := l.Append(payload(good + 1)); err != nil {
			return good, err
		}
	}
	return good, nil
}

// TestCutBackFails lets the file system be full and the cutting back fail, too.
func TestCutBackFails(t *testing.T) {
	for _, kind := range []simfs.Kind{simfs.Truncate, simfs.Sync} {
		o, sim := simOptions(t, "zfs")
		l, _ := open(t, o)
		appendTo(t, l, 3)
		sim.SetFree(5)
		sim.SetHook(func(op simfs.Op) error {
			if op.Kind == kind {
				return syscall.EIO
			}
			return nil
		})
		if _, err := l.Append(payload(4)); !errors.Is(err, ErrFailed) || errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// TestTrimFails lets removals fail; later ones do the rest.
func TestTrimFails(t *testing.T) {
	o, sim := simOptions(t, "ext4")
	l, _ := open(t, o)
	appendTo(t, l, 60)
	sim.SetHook(func(op simfs.Op) error {
		if op.Kind == simfs.Remove {
			return syscall.EIO
		}
		return nil
	})
	if err := l.TrimBefore(60); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	sim.SetHook(nil)
	must(t, l.TrimBefore(60))
	if n := len(segmentFiles(t, o.Dir)); n != 1 {
		t.Errorf("%d segments left", n)
	}
	appendTo(t, l, 61)
}

func TestReserve(t *testing.T) {
	eachType(t, func(t *testing.T, fsType string) {
		o, sim := simOptions(t, fsType)
		o.ReserveBytes = 3000
		l, _ := open(t, o)
		file := filepath.Join(o.Dir, reserveName)
		info, err := os.Stat(file)
		must(t, err)
		if info.Size() != o.ReserveBytes {
			t.Fatalf("the reserve has %d bytes", info.Size())
		}
		sim.SetFree(0)
		if _, err := l.Append(payload(1)); !errors.Is(err, ErrNoSpace) {
			t.Fatalf("got %v", err)
		}
		must(t, l.UseReserve())
		must(t, l.UseReserve())
		appendTo(t, l, 3)
		if err := l.RestoreReserve(); !errors.Is(err, ErrNoSpace) {
			t.Errorf("no room for the reserve: got %v", err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("a part of the reserve was left: %v", err)
		}
		appendTo(t, l, 5)
		must(t, l.Close())
		l, _ = open(t, o) // has no room for it either
		sim.SetFree(-1)
		must(t, l.RestoreReserve())
		must(t, l.RestoreReserve())
		must(t, l.Close())
		o.ReserveBytes = 0
		_, r := open(t, o)
		r.want(1, 5)
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("no reserve is wanted, but: %v", err)
		}
	})
}

func TestSlowSyncIsLogged(t *testing.T) {
	var text bytes.Buffer
	o := testOptions(t)
	o.Logger = slog.New(slog.NewTextHandler(&text, nil))
	o.SlowSync = time.Nanosecond
	l, _ := open(t, o)
	appendTo(t, l, 1)
	if !strings.Contains(text.String(), "slow") || !strings.Contains(text.String(), o.path(1)) {
		t.Errorf("logged %q", text.String())
	}
}
