package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

func putKey(t *testing.T, s *Store, key string) {
	t.Helper()
	res, err := s.Txn(t.Context(), &TxnRequest{Success: []Op{{Put: &PutRequest{Key: []byte(key), Value: []byte("value")}}}})
	if err != nil {
		t.Fatal(err)
	}
	res.Close()
}

// The writer answers as soon as what it was at is synced, and not before.
func TestAwaitWriter(t *testing.T) {
	files := newFaultFS()
	s, err := Open(Options{Dir: t.TempDir(), FS: files})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitWriter(); err != nil {
		t.Errorf("idle: %v", err)
	}
	g := newGate(nil)
	files.set(func(f *faultFS) { f.sync = g.wait })
	put := make(chan error, 1)
	go func() {
		res, err := s.Txn(t.Context(), &TxnRequest{Success: []Op{{Put: &PutRequest{Key: []byte("k")}}}})
		if err == nil {
			res.Close()
		}
		put <- err
	}()
	<-g.arrived
	answer := make(chan error, 1)
	go func() { answer <- s.AwaitWriter() }()
	select {
	case err := <-answer:
		t.Errorf("it has answered while a sync was under way: %v", err)
	default:
	}
	close(g.open)
	if err := errors.Join(<-put, <-answer); err != nil {
		t.Error(err)
	}
	before := s.Status().Index
	if err := errors.Join(s.AwaitWriter(), s.AskDisk()); err != nil {
		t.Error(err)
	}
	if after := s.Status().Index; after != before {
		t.Errorf("asking has written frame %d after %d", after, before)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitWriter(); !errors.Is(err, ErrStopped) {
		t.Errorf("closed: %v", err)
	}
}

// askedFS makes syncs of the lock file fail.
type askedFS struct{ vfs.FS }

type askedFile struct{ vfs.File }

func (a askedFS) OpenRead(name string) (vfs.File, error) {
	f, err := a.FS.OpenRead(name)
	if err == nil && strings.HasSuffix(name, vfs.LockName) {
		f = askedFile{f}
	}
	return f, err
}

func (askedFile) Sync() error { return errDisk }

// What the disk answers when it is asked is no failure of the store.
func TestAskDiskError(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), FS: askedFS{vfs.OS}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.AskDisk(); !errors.Is(err, errDisk) {
		t.Errorf("the error is %v", err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("the store has stopped: %v", err)
	}
	putKey(t, s, "key")
}

// Who observes sees a write once it is visible, and a recovery while it reads.
func TestObservers(t *testing.T) {
	dir := t.TempDir()
	var s *Store
	var seen atomic.Int64
	opts := Options{Dir: dir, ObservePublish: func() {
		if s != nil {
			seen.Store(s.Revision())
		}
	}}
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 2*recoveryStep + 10
	for i := range keys {
		putKey(t, s, fmt.Sprint("key-", i))
		if got, want := seen.Load(), s.Revision(); got != want {
			t.Fatalf("the observer has seen revision %d, %d is published", got, want)
		}
	}
	crashed := t.TempDir() // with all of it in the log
	must(t, os.CopyFS(crashed, os.DirFS(dir)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, crashed} {
		var steps []int
		again, err := Open(Options{Dir: d, ObserveRecovery: func(records int) { steps = append(steps, records) }})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(steps) != fmt.Sprint([]int{recoveryStep, 2 * recoveryStep}) {
			t.Errorf("recovery has told %v", steps)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
