package wal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// The directory for benchmarks: TMPDIR must be on the file system to measure.

// growing is a file system that preallocates nothing.
type growing struct{ vfs.FS }

type growingFile struct{ vfs.File }

func (g growing) Create(name string) (vfs.File, error) {
	f, err := g.FS.Create(name)
	return growingFile{f}, err
}

func (growingFile) Preallocate(int64) error { return nil }

var benchSizes = []int{300, 1024, 64 << 10}

func BenchmarkAppend(b *testing.B) {
	for name, fs := range map[string]vfs.FS{"preallocated": vfs.OS, "growing": growing{vfs.OS}} {
		for _, size := range benchSizes {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				l, err := Open(Options{FS: fs, Dir: filepath.Join(b.TempDir(), "wal"), StoreID: testID}, nil)
				must(b, err)
				defer l.Close()
				measure(b, size, func(buf []byte) error {
					_, err := l.AppendFrame(buf)
					return err
				})
			})
		}
	}
}

// BenchmarkAppendAfterOpen appends to a segment that was just read from disk.
func BenchmarkAppendAfterOpen(b *testing.B) {
	for _, size := range benchSizes[:2] {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			o := Options{Dir: filepath.Join(b.TempDir(), "wal"), StoreID: testID}
			l, err := Open(o, nil)
			must(b, err)
			_, err = l.Append(make([]byte, 1<<20))
			must(b, err)
			must(b, l.Close())
			l, err = Open(o, func(uint64, []byte) error { return nil })
			must(b, err)
			defer l.Close()
			measure(b, size, func(buf []byte) error {
				_, err := l.AppendFrame(buf)
				return err
			})
		})
	}
}

// BenchmarkFloor is the least that an append can cost: a write and a sync in a
// file whose space is there.
func BenchmarkFloor(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, err := vfs.OS.Create(filepath.Join(b.TempDir(), "floor"))
			must(b, err)
			defer f.Close()
			must(b, f.Preallocate(64<<20))
			must(b, f.Sync())
			var off int64
			measure(b, size, func(buf []byte) error {
				_, err := f.WriteAt(buf, off)
				off += align(int64(len(buf)))
				if err != nil {
					return err
				}
				return f.Sync()
			})
		})
	}
}

// BenchmarkRecycled overwrites a file that was once filled, by writes of chunk
// bytes, as a segment would be that is used again instead of removed.
func BenchmarkRecycled(b *testing.B) {
	for _, chunk := range []int{4 << 10, 1 << 20} {
		for _, size := range benchSizes[:2] {
			b.Run(fmt.Sprintf("filled by %d/%d", chunk, size), func(b *testing.B) {
				f, err := vfs.OS.Create(filepath.Join(b.TempDir(), "recycled"))
				must(b, err)
				defer f.Close()
				for off := 0; off < DefaultSegmentSize; off += chunk {
					_, err := f.WriteAt(bytes.Repeat([]byte{1}, chunk), int64(off))
					must(b, err)
				}
				must(b, f.Sync())
				var off int64
				measure(b, size, func(buf []byte) error {
					_, err := f.WriteAt(buf, off%(DefaultSegmentSize-int64(len(buf))))
					off += align(int64(len(buf)))
					if err != nil {
						return err
					}
					return f.Sync()
				})
			})
		}
	}
}

// measure runs op with a frame of size bytes of payload, and reports the bytes
// that the process handed to the disk for each.
func measure(b *testing.B, size int, op func(buf []byte) error) {
	buf := make([]byte, FrameHeader+size)
	for i := range buf {
		buf[i] = byte(i)
	}
	b.ReportAllocs()
	before := writtenBytes(b)
	for b.Loop() {
		if err := op(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(writtenBytes(b)-before)/float64(b.N), "written-B/op")
}

func writtenBytes(b *testing.B) (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	must(b, err)
	_, after, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	_, err = fmt.Sscan(after, &n)
	must(b, err)
	return n
}

func BenchmarkOpen(b *testing.B) {
	o := Options{Dir: filepath.Join(b.TempDir(), "wal"), StoreID: testID}
	l, err := Open(o, nil)
	must(b, err)
	for range 16 {
		_, err := l.Append(make([]byte, 1<<20))
		must(b, err)
	}
	must(b, l.Close())
	b.SetBytes(16 << 20)
	for b.Loop() {
		l, err := Open(o, func(uint64, []byte) error { return nil })
		must(b, err)
		must(b, l.Close())
	}
}
