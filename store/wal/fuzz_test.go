package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	fuzzFrames = 40 // of the log that is damaged

	// fuzzHang is how long reading a damaged log may take: far more than it does on
	// a slow machine.
	fuzzHang = 30 * time.Second
	// fuzzMemory is what it may allocate beside a multiple of the files' size.
	fuzzMemory = 4 << 20
)

// FuzzRecovery damages the files of a good log and opens it. Either Open fails with an
// error that names a file, and has changed nothing; or it gives the frames that were
// written from the first one on, and those that are missing at the end are
// nowhere in their segment, as if they had never been written whole.
func FuzzRecovery(f *testing.F) {
	whole := fuzzLog(f)
	for _, harm := range fuzzSeeds(whole) {
		f.Add(uint8(0), harm)
		f.Add(uint8(9), harm)
	}
	f.Fuzz(func(t *testing.T, after uint8, harm []byte) {
		h := harmer{files: cloneFiles(whole), left: harm}
		h.run()
		hang := time.AfterFunc(fuzzHang, func() { panic("reading the log does not end") })
		defer hang.Stop()
		before := allocated()
		openHarmed(t, h.files, uint64(after), h.forged)
		size := 0
		for _, b := range h.files {
			size += len(b)
		}
		if used := allocated() - before; used > fuzzMemory+uint64(16*size) {
			t.Errorf("%d bytes were allocated for files of %d", used, size)
		}
	})
}

// fuzzLog makes the files of a log with several segments.
func fuzzLog(t testing.TB) map[string][]byte {
	fs := memFS{}
	l, err := Open(Options{FS: fs, Dir: "wal", StoreID: testID, SegmentSize: 600}, nil)
	must(t, err)
	appendTo(t, l, fuzzFrames)
	must(t, l.Close())
	if len(fs) < 4 {
		t.Fatalf("%d segments: the test wants more", len(fs))
	}
	return fs.content()
}

func cloneFiles(files map[string][]byte) map[string][]byte {
	c := map[string][]byte{}
	for name, b := range files {
		c[name] = bytes.Clone(b)
	}
	return c
}

// allocated is the number of bytes that were allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// openHarmed opens damaged files twice and looks at what came out. In forged files
// a frame can be anything.
func openHarmed(t *testing.T, files map[string][]byte, after uint64, forged bool) {
	fs := newMemFS(files)
	o := Options{FS: fs, Dir: "wal", StoreID: testID, SegmentSize: 600, AfterSeq: after}
	var got []uint64
	l, err := Open(o, func(seq uint64, p []byte) error {
		if seq <= after || len(got) > 0 && seq != got[len(got)-1]+1 {
			t.Errorf("frame %d is given after %d", seq, got)
		}
		got = append(got, seq)
		if !forged && (seq > fuzzFrames || !bytes.Equal(p, payload(seq))) {
			t.Errorf("frame %d has another payload than it was given", seq)
		}
		return nil
	})
	if err != nil {
		refusedWell(t, o, files, err)
		return
	}
	defer l.Close()
	if len(got) > 0 && got[0] > after+1 {
		t.Errorf("frames %d to %d are skipped", after+1, got[0]-1)
	}
	if !forged {
		lostNone(t, files, l.LastSeq())
	}
	if report, err := Check(o, nil); err != nil || after == 0 && len(report.Problems) > 0 {
		t.Errorf("opened well, but Check says %v, %v", report.Problems, err)
	}
	goesOn(t, l, o, got)
}

// refusedWell checks an error of Open.
func refusedWell(t *testing.T, o Options, files map[string][]byte, err error) {
	var damage *CorruptError
	if !errors.As(err, &damage) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrVersion) {
		t.Errorf("Open: %v", err)
	}
	if damage != nil && (damage.File == "" || damage.Offset < 0 || damage.Reason == "") {
		t.Errorf("Open does not say where: %+v", damage)
	}
	if !maps.EqualFunc(o.FS.(memFS).content(), files, bytes.Equal) {
		t.Error("Open refused the log and changed it")
	}
	if report, err := Check(o, nil); err != nil || len(report.Problems) == 0 {
		t.Errorf("Open refused the log, but Check finds %+v, %v", report, err)
	}
}

// lostNone looks for whole frames after the last one that was given, in the
// segment that they belong to.
func lostNone(t *testing.T, files map[string][]byte, last uint64) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(n string) bool { return !strings.HasSuffix(n, segmentSuffix) })
	for seq := last + 1; seq <= fuzzFrames; seq++ {
		frame := append(make([]byte, FrameHeader), payload(seq)...)
		for _, name := range names {
			first, ok := parseSegmentName(name)
			if !ok || first > seq {
				continue
			}
			_, salt := segmentHeader(testID, first)
			sealFrame(frame, seq, salt)
			if bytes.Contains(files[name], frame) {
				t.Errorf("the log ends at frame %d, and frame %d is in %s", last, seq, name)
			}
		}
	}
}

// goesOn appends to the log and opens it again.
func goesOn(t *testing.T, l *Log, o Options, got []uint64) {
	last := l.LastSeq()
	if last > 1<<63 {
		return // forged
	}
	seq, err := l.Append([]byte("more"))
	if err != nil || seq != last+1 {
		t.Fatalf("frame %d follows frame %d: %v", seq, last, err)
	}
	must(t, l.Close())
	n := 0
	l, err = Open(o, func(uint64, []byte) error { n++; return nil })
	must(t, err)
	must(t, l.Close())
	if n != len(got)+1 {
		t.Errorf("%d frames at first, and %d with one more", len(got), n)
	}
}

// harmer damages files as a list of bytes tells it: a kind of damage, then its
// numbers. Offsets are 16 bits, all else one byte.
type harmer struct {
	files  map[string][]byte
	left   []byte
	forged bool // checksums were made right again
}

func (h *harmer) byte() int {
	if len(h.left) == 0 {
		return 0
	}
	b := h.left[0]
	h.left = h.left[1:]
	return int(b)
}

func (h *harmer) offset(b []byte) int { return (h.byte()<<8 | h.byte()) % (len(b) + 1) }

func (h *harmer) file() string {
	names := slices.Sorted(maps.Keys(h.files))
	return names[h.byte()%len(names)]
}

// The kinds of damage.
const (
	harmFlip byte = iota
	harmCut
	harmInsert
	harmCopy
	harmClear
	harmRename
	harmRemove
	harmReplace
	harmForge
	harmKinds
)

func (h *harmer) run() {
	for len(h.left) > 0 && len(h.files) > 0 {
		kind := byte(h.byte()) % harmKinds
		name := h.file()
		b := h.files[name]
		at := h.offset(b)
		switch kind {
		case harmFlip:
			if at < len(b) {
				b[at] ^= 1 << (h.byte() % 8)
			}
		case harmCut:
			h.files[name] = b[:at]
		case harmInsert:
			n := min(h.byte(), len(h.left))
			h.files[name] = slices.Concat(b[:at], h.left[:n], b[at:])
			h.left = h.left[n:]
		case harmCopy:
			src := h.files[h.file()]
			from := h.offset(src)
			copy(b[at:], bytes.Clone(src[from:min(len(src), from+2*h.byte())]))
		case harmClear:
			clear(b[at:min(len(b), at+2*h.byte())])
		case harmRename: // what has the name already is lost
			delete(h.files, name)
			h.files[segmentName(uint64(1+h.byte()))] = b
		case harmRemove:
			delete(h.files, name)
		case harmReplace:
			h.files[name] = bytes.Clone(h.left)
			h.left = nil
		case harmForge:
			h.forge(b, at)
		}
	}
}

// forge makes checksums right: the header's, or that of a frame with a length and a number that
// the input chooses.
func (h *harmer) forge(b []byte, at int) {
	if len(b) < headerLen {
		return
	}
	h.forged = true
	if at < headerLen {
		reseal(b)
		return
	}
	n := min(2*h.byte(), len(b)-at-FrameHeader)
	if n < 0 {
		return
	}
	sealFrame(b[at:][:FrameHeader+n], uint64(h.byte()), binary.LittleEndian.Uint32(b[headerLen-4:]))
}

// fuzzSeeds are damages of each kind, in the first, a middle and the last segment.
func fuzzSeeds(files map[string][]byte) (seeds [][]byte) {
	last := byte(len(files) - 1)
	frame3 := byte(headerLen + align(FrameHeader+int64(len(payload(1)))) + align(FrameHeader+int64(len(payload(2)))))
	for kind := range harmKinds {
		for _, file := range []byte{0, last / 2, last} {
			seeds = append(seeds, []byte{kind, file, 0, frame3, 4, 1, 2, 3, 4, 5, 6})
			seeds = append(seeds, []byte{kind, file, 0, 20, 1, 9})
		}
	}
	return append(seeds, nil,
		[]byte{harmFlip, last, 0, headerLen + 20, 0, harmFlip, last, 1, 200, 3},
		[]byte{harmInsert, last, 0, headerLen, 1, 0},
		[]byte{harmRename, 0, 0, 0, 200, harmRename, 0, 0, 0, 0})
}
