package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reseal makes the CRC of a segment's header right again.
func reseal(content []byte) {
	binary.LittleEndian.PutUint32(content[headerLen-4:], crc32.Checksum(content[:headerLen-4], castagnoli))
}

// oneSegment makes a log of n frames in one segment and returns its content and
// where each frame begins; the last offset is where the frames end.
func oneSegment(t *testing.T, n uint64) (o Options, file string, content []byte, offsets []int64) {
	t.Helper()
	o = testOptions(t)
	o.SegmentSize = 2000
	l, _ := open(t, o)
	appendTo(t, l, n)
	must(t, l.Close())
	files := segmentFiles(t, o.Dir)
	if len(files) != 1 {
		t.Fatalf("%d segments, the test wants one", len(files))
	}
	content, err := os.ReadFile(files[0])
	must(t, err)
	off := int64(headerLen)
	for seq := uint64(1); seq <= n; seq++ {
		offsets = append(offsets, off)
		off = align(off + FrameHeader + int64(len(payload(seq))))
	}
	return o, files[0], content, append(offsets, off)
}

// reopenTorn opens the log in the state that a crash left, and goes on with it.
func reopenTorn(t *testing.T, o Options, good uint64) {
	t.Helper()
	o.FS = simOver(t, o.Dir)
	l, r := open(t, o)
	r.want(1, good)
	appendTo(t, l, good+2)
	must(t, l.Close())
	l, r = open(t, o)
	r.want(1, good+2)
	must(t, l.Close())
}

func TestTornLastFrame(t *testing.T) {
	const n = 6
	o, file, content, offsets := oneSegment(t, n)
	from, to := offsets[n-1], offsets[n-1]+FrameHeader+int64(len(payload(n)))
	t.Run("cut short", func(t *testing.T) {
		for end := from; end < to; end++ {
			must(t, os.WriteFile(file, content[:end], 0o600))
			reopenTorn(t, o, n-1)
		}
	})
	t.Run("zeros from an offset on", func(t *testing.T) {
		for end := from; end < to; end++ {
			if content[end] == 0 && len(strings.Trim(string(content[end:to]), "\x00")) == 0 {
				continue // nothing is lost
			}
			b := append([]byte{}, content...)
			clear(b[end:])
			must(t, os.WriteFile(file, b, 0o600))
			reopenTorn(t, o, n-1)
		}
	})
	t.Run("zeros up to an offset", func(t *testing.T) {
		for end := from + 1; end < to; end++ {
			b := append([]byte{}, content...)
			if strings.Trim(string(b[from:end]), "\x00") == "" {
				continue
			}
			clear(b[from:end])
			must(t, os.WriteFile(file, b, 0o600))
			reopenTorn(t, o, n-1)
		}
	})
	t.Run("a flipped bit", func(t *testing.T) {
		for bit := 8 * from; bit < 8*to; bit++ {
			b := append([]byte{}, content...)
			b[bit/8] ^= 1 << (bit % 8)
			must(t, os.WriteFile(file, b, 0o600))
			reopenTorn(t, o, n-1)
		}
	})
}

// TestTornFrameDoesNotOutliveARotation has a torn frame that is longer than what
// is appended before the next segment begins.
func TestTornFrameDoesNotOutliveARotation(t *testing.T) {
	o, file, content, offsets := oneSegment(t, 6)
	b := append([]byte{}, content[:offsets[6]]...)
	must(t, os.WriteFile(file, append(b, bytes.Repeat([]byte("torn"), 300)...), 0o600))
	l, r := open(t, o)
	r.want(1, 6)
	appendTo(t, l, 7)
	_, err := l.Append(make([]byte, o.SegmentSize))
	must(t, err)
	must(t, l.Close())
	if n := len(segmentFiles(t, o.Dir)); n != 2 {
		t.Fatalf("%d segments, the test wants two", n)
	}
	o.AfterSeq = 7
	l, err = Open(o, func(uint64, []byte) error { return nil })
	must(t, err)
	defer l.Close()
	report, err := Check(o, nil)
	must(t, err)
	if report.Problems != nil || report.Frames != 8 {
		t.Errorf("got %+v", report)
	}
}

func TestDamagedMiddleFrame(t *testing.T) {
	o, file, content, offsets := oneSegment(t, 6)
	for bit := 8 * offsets[3]; bit < 8*(offsets[3]+FrameHeader+int64(len(payload(4)))); bit++ {
		b := append([]byte{}, content...)
		b[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(file, b, 0o600))
		_, err := Open(o, func(uint64, []byte) error { return nil })
		var damage *CorruptError
		if !errors.As(err, &damage) || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d: got %v", bit, err)
		}
		if damage.File != file || damage.Offset != offsets[3] {
			t.Fatalf("bit %d: reported %s at %d, want %d", bit, damage.File, damage.Offset, offsets[3])
		}
		after, err := os.ReadFile(file)
		must(t, err)
		if string(after) != string(b) {
			t.Fatal("a damaged log was changed")
		}
	}
}

func TestDamagedHeader(t *testing.T) {
	o, file, content, _ := oneSegment(t, 3)
	for bit := range 8 * headerLen {
		b := append([]byte{}, content...)
		b[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(file, b, 0o600))
		if _, err := Open(o, func(uint64, []byte) error { return nil }); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d: got %v", bit, err)
		}
	}
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(o, func(uint64, []byte) error { return nil }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an empty file: got %v", err)
	}
}

func TestSegmentsThatDoNotFit(t *testing.T) {
	build := func(t *testing.T) (Options, []string) {
		o := testOptions(t)
		l, _ := open(t, o)
		appendTo(t, l, 60)
		must(t, l.Close())
		return o, segmentFiles(t, o.Dir)
	}
	for name, c := range map[string]struct {
		harm   func(t *testing.T, o Options, files []string)
		reason string
	}{
		"the first is missing": {func(t *testing.T, _ Options, files []string) {
			must(t, os.Remove(files[0]))
		}, "missing"},
		"one in the middle is missing": {func(t *testing.T, _ Options, files []string) {
			must(t, os.Remove(files[1]))
		}, "missing"},
		"one was renamed": {func(t *testing.T, o Options, files []string) {
			must(t, os.Rename(files[len(files)-1], o.path(1000)))
		}, "missing"},
		"the first was renamed": {func(t *testing.T, o Options, files []string) {
			for _, f := range files[1:] {
				must(t, os.Remove(f))
			}
			must(t, os.Rename(files[0], o.path(2)))
		}, "missing"},
		"a copy with another name": {func(t *testing.T, o Options, files []string) {
			b, err := os.ReadFile(files[0])
			must(t, err)
			must(t, os.WriteFile(o.path(2), b, 0o600))
		}, ""},
		"a stray name": {func(t *testing.T, o Options, files []string) {
			must(t, os.Rename(files[0], filepath.Join(o.Dir, "copy of 1.wal")))
		}, "not the name"},
		"one in the middle ends early": {func(t *testing.T, _ Options, files []string) {
			must(t, os.Truncate(files[1], headerLen+FrameHeader+3))
		}, "later segment"},
		"one in the middle lost its last frames": {func(t *testing.T, _ Options, files []string) {
			must(t, os.Truncate(files[1], headerLen))
		}, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			o, files := build(t)
			c.harm(t, o, files)
			_, err := Open(o, func(uint64, []byte) error { return nil })
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v", err)
			}
			report, err := Check(o, nil)
			if err == nil && len(report.Problems) == 0 {
				t.Error("Check found nothing")
			}
		})
	}
}

// TestFrameOfAnotherSegmentDoesNotCount puts a whole frame of one segment at
// the torn end of another.
func TestFrameOfAnotherSegmentDoesNotCount(t *testing.T) {
	o, file, content, offsets := oneSegment(t, 4)
	stale := append(make([]byte, FrameHeader), payload(5)...)
	sealFrame(stale, 5, 12345)
	b := append([]byte{}, content[:offsets[4]]...)
	must(t, os.WriteFile(file, append(b, stale...), 0o600))
	reopenTorn(t, o, 4)
}

func TestCheck(t *testing.T) {
	o, file, content, offsets := oneSegment(t, 6)
	var n int
	report, err := Check(Options{Dir: o.Dir}, func(uint64, []byte) error { n++; return nil })
	must(t, err)
	if report.Segments != 1 || report.Frames != 6 || n != 6 || report.FirstSeq != 1 || report.LastSeq != 6 ||
		report.Bytes != int64(len(content)) || report.TornBytes != 0 || report.Problems != nil {
		t.Errorf("good log: %+v, %d frames seen", report, n)
	}
	must(t, os.WriteFile(file, content[:offsets[5]+20], 0o600))
	report, err = Check(o, nil)
	must(t, err)
	if report.Frames != 5 || report.TornBytes == 0 || report.Problems != nil {
		t.Errorf("torn log: %+v", report)
	}
	content[offsets[2]+4]++
	must(t, os.WriteFile(file, content, 0o600))
	report, err = Check(o, nil)
	must(t, err)
	if report.Frames != 2 || len(report.Problems) != 1 || !errors.Is(report.Problems[0], ErrCorrupt) {
		t.Errorf("damaged log: %+v", report)
	}
}

func TestUnfinishedSegmentIsRemoved(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	appendTo(t, l, 3)
	must(t, l.Close())
	left := filepath.Join(o.Dir, "0000000000000004"+newSuffix)
	must(t, os.WriteFile(left, []byte("half"), 0o600))
	_, r := open(t, o)
	r.want(1, 3)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}

// wantCorruptAt checks that the log is refused for what is in a file at an offset.
func wantCorruptAt(t *testing.T, o Options, file string, offset int64) {
	t.Helper()
	_, err := Open(o, func(uint64, []byte) error { return nil })
	var damage *CorruptError
	if !errors.As(err, &damage) || damage.File != file || damage.Offset != offset {
		t.Errorf("got %v, want damage in %s at %d", err, file, offset)
	}
}

func TestSegmentTooLarge(t *testing.T) {
	o := testOptions(t)
	l, _ := open(t, o)
	appendTo(t, l, 3)
	must(t, l.Close())
	must(t, os.Truncate(o.path(1), o.largest()+1)) // takes no space
	wantCorruptAt(t, o, o.path(1), o.largest())
	report, err := Check(o, nil)
	must(t, err)
	if len(report.Problems) != 1 || !errors.Is(report.Problems[0], ErrCorrupt) {
		t.Errorf("Check: %+v", report)
	}
}
