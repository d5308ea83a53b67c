package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// hangingFS calls a function before each sync of a file below the directory of the log.
type hangingFS struct {
	vfs.FS
	sync atomic.Pointer[func()]
}

type hangingFile struct {
	vfs.File
	fs *hangingFS
}

func (h *hangingFS) Create(name string) (vfs.File, error) {
	f, err := h.FS.Create(name)
	return h.wrap(name, f, err)
}

func (h *hangingFS) Open(name string) (vfs.File, error) {
	f, err := h.FS.Open(name)
	return h.wrap(name, f, err)
}

func (h *hangingFS) OpenRead(name string) (vfs.File, error) {
	f, err := h.FS.OpenRead(name)
	return h.wrap(name, f, err)
}

func (h *hangingFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if base := filepath.Base(filepath.Dir(name)); err != nil || base != "wal" && filepath.Base(name) != vfs.LockName {
		return f, err
	}
	return &hangingFile{f, h}, nil
}

func (f *hangingFile) Sync() error {
	if do := f.fs.sync.Load(); do != nil {
		(*do)()
	}
	return f.File.Sync()
}

// startOn runs a server on a disk that can hang, with a watchdog.
func startOn(t *testing.T, disk *hangingFS, watchdog time.Duration) (*running, *notifySocket) {
	t.Helper()
	n := listenNotify(t)
	notify := notified(t, n, watchdog)
	return start(t, testOptions(t), nil, func(s *serving) {
		notify(s)
		s.disk = vfs.Track(disk)
	}), n
}

// A disk that hangs, with a write under way or without: the watchdog is not fed until it answers
// again, and why is told to systemd, in the log and by tarn status before.
func TestServeDiskHangs(t *testing.T) {
	for _, write := range []bool{true, false} {
		t.Run(fmt.Sprintf("write %v", write), func(t *testing.T) {
			disk := &hangingFS{FS: vfs.OS}
			r, n := startOn(t, disk, time.Second)
			cl := r.client(t)
			n.await(t, "WATCHDOG=1")
			gate := make(chan struct{})
			hang := func() { <-gate }
			disk.sync.Store(&hang)
			written := make(chan error, 1)
			if write {
				go func() { written <- put(t, cl, "key", "value") }()
			} else {
				written <- nil
			}
			n.await(t, "STATUS=hanging")
			for _, m := range append(n.await(t, "STATUS=hanging"), n.await(t, "STATUS=hanging")...) {
				if strings.Contains(m, "WATCHDOG=1") || !strings.Contains(m, "fdatasync of "+r.opts.dataDir) {
					t.Errorf("while the disk hangs systemd is told %q", m)
				}
			}
			if !strings.Contains(r.log.String(), `level=ERROR msg="the watchdog is not fed any more`) || !strings.Contains(r.log.String(), "fdatasync of "+r.opts.dataDir) {
				t.Errorf("log:\n%s", r.log)
			}
			code, out, errs := tarn(t, nil, "status", "--endpoint="+r.url, "--timeout=10s")
			if code != exitOK || !strings.Contains(out, "an operation has not returned for") {
				t.Errorf("status: exit code %d: %s%s", code, out, errs)
			}
			disk.sync.Store(nil)
			close(gate)
			if err := <-written; err != nil {
				t.Errorf("the write that waited: %v", err)
			}
			fed := n.await(t, "WATCHDOG=1")
			if want := fmt.Sprintf("STATUS=revision %d", r.store.Revision()); !has(fed, want) {
				n.await(t, want)
			}
		})
	}
}

// A disk on which each sync takes a good part of the time that is allowed is slow, and no more.
func TestServeDiskSlow(t *testing.T) {
	disk := &hangingFS{FS: vfs.OS}
	const watchdog = 4 * time.Second
	r, n := startOn(t, disk, watchdog)
	slow := func() { time.Sleep(watchdog / 10) }
	disk.sync.Store(&slow)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	cl := r.client(t)
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if err := put(t, cl, "key", fmt.Sprint(i)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 4 {
		if m := n.await(t, "WATCHDOG=1"); has(m, "STATUS=hanging") {
			t.Errorf("a slow disk is taken for one that hangs: %q", m)
		}
	}
	cancel()
	<-done
	if strings.Contains(r.log.String(), "not fed") {
		t.Errorf("log:\n%s", r.log)
	}
}

// A server that fails to open its store does not say that it is ready.
func TestServeFailsUnready(t *testing.T) {
	n := listenNotify(t)
	s := newServing(testOptions(t), nil, &syncBuffer{})
	s.opts.storeID = "00000000000000000000000000000001"
	notified(t, n, time.Minute)(s)
	if err := s.run(t.Context(), nil); exitCode(err) != exitRefused {
		t.Errorf("the error is %v", err)
	}
	s.manager.notify.Stopping("end of the test")
	if m := n.await(t, "STOPPING=1"); has(m, "READY=1") || has(m, "WATCHDOG=1") {
		t.Errorf("systemd was told %q", m)
	}
}
