package store

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// countFS counts what is written to the log.
type countFS struct {
	vfs.FS
	bytes, writes atomic.Int64
}

func (f *countFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	if err != nil || !strings.Contains(name, "/"+walName+"/") {
		return file, err
	}
	return &countFile{file, f}, nil
}

type countFile struct {
	vfs.File
	fs *countFS
}

func (f *countFile) WriteAt(b []byte, off int64) (int, error) {
	f.fs.bytes.Add(int64(len(b)))
	f.fs.writes.Add(1)
	return f.File.WriteAt(b, off)
}

// A write by itself is one write and one sync of the log, of little more than the key and the value.
func TestLogTakesOneSmallWritePerPut(t *testing.T) {
	for _, size := range []int{300, 1024, 10_240} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			const puts, beside = 50, 100
			var syncs atomic.Int64
			fs := &countFS{FS: vfs.OS}
			s := openStore(t, Options{Dir: t.TempDir(), FS: fs, ObserveSync: func(time.Duration) { syncs.Add(1) }})
			key, value := "/registry/pods/default/pod-1", strings.Repeat("v", size)
			fs.bytes.Store(0)
			fs.writes.Store(0)
			syncs.Store(0)
			for range puts {
				put(t, s, key, value)
			}
			if fs.writes.Load() != puts || syncs.Load() != puts {
				t.Errorf("%d writes and %d syncs for %d puts", fs.writes.Load(), syncs.Load(), puts)
			}
			if n := fs.bytes.Load() / puts; n > int64(len(key)+size+beside) {
				t.Errorf("%d bytes of log for a key of %d and a value of %d", n, len(key), size)
			}
		})
	}
}

// However many write at once, the log takes no bytes more for each, and a batch is one write and one sync.
func TestLogTakesOneWritePerBatch(t *testing.T) {
	const writers, each, size, beside = 32, 20, 1024, 100
	var syncs atomic.Int64
	fs := &countFS{FS: vfs.OS}
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs, ObserveSync: func(time.Duration) { syncs.Add(1) }})
	fs.bytes.Store(0)
	fs.writes.Store(0)
	syncs.Store(0)
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			for range each {
				_, err := do(s, putOp(fmt.Sprintf("key-%d", i), strings.Repeat("v", size)))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if fs.writes.Load() != syncs.Load() {
		t.Errorf("%d writes, %d syncs", fs.writes.Load(), syncs.Load())
	}
	if n := fs.bytes.Load() / (writers * each); n > size+beside {
		t.Errorf("%d bytes of log for a value of %d", n, size)
	}
}
