//go:build zfs

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// fullRun is a server whose file system gets full.
type fullRun struct {
	t       *testing.T
	dir     string // of the data
	foreign string // a file that takes all the room that is left
	c       *child
	cl      *client
	keys    int
	rev     int64
}

func (r *fullRun) start() {
	r.t.Helper()
	r.c = startChild(r.t, "--data-dir="+r.dir)
	r.cl = (&running{url: r.c.url}).client(r.t)
}

// put writes a new key with a value that can not be compressed.
func (r *fullRun) put() error {
	value := make([]byte, 256<<10)
	rand.Read(value)
	resp, err := etcdserverpb.NewKVClient(r.cl).Put(r.t.Context(), &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "/registry/x/%05d", r.keys), Value: value})
	if err == nil {
		r.keys++
		r.rev = resp.Header.Revision
	}
	return err
}

// delete deletes the newest n keys, one by one.
func (r *fullRun) delete(n int) {
	r.t.Helper()
	for range n {
		r.keys--
		resp, err := etcdserverpb.NewKVClient(r.cl).DeleteRange(r.t.Context(), &etcdserverpb.DeleteRangeRequest{Key: fmt.Appendf(nil, "/registry/x/%05d", r.keys)})
		if err != nil || resp.Deleted != 1 {
			r.t.Fatalf("delete on a full file system: %v, %v", resp, err)
		}
		r.rev = resp.Header.Revision
	}
}

func (r *fullRun) compact() {
	r.t.Helper()
	_, err := etcdserverpb.NewKVClient(r.cl).Compact(r.t.Context(), &etcdserverpb.CompactionRequest{Revision: r.rev, Physical: true})
	if err != nil {
		r.t.Fatalf("compact on a full file system: %v", err)
	}
}

func (r *fullRun) wantNoSpace(when string) {
	r.t.Helper()
	if err := r.put(); status.Code(err) != codes.ResourceExhausted {
		r.t.Fatalf("%s: a put ends with %v", when, err)
	}
}

// takeAllRoom fills the rest of the file system, by a hand that is not the server's.
func (r *fullRun) takeAllRoom() {
	r.t.Helper()
	f, err := os.Create(r.foreign)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; size /= 2 {
		chunk := make([]byte, size)
		for err = nil; err == nil; {
			rand.Read(chunk)
			if _, err = f.Write(chunk); err == nil {
				err = f.Sync()
			}
		}
		if !errors.Is(err, syscall.EDQUOT) && !errors.Is(err, syscall.ENOSPC) {
			r.t.Fatal(err)
		}
	}
}

func (r *fullRun) giveRoomBack() {
	r.t.Helper()
	if err := os.Remove(r.foreign); err != nil {
		r.t.Fatal(err)
	}
}

// puttable waits until puts are taken again: ZFS frees in the background.
func (r *fullRun) puttable() {
	r.t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := r.put()
		if err == nil {
			return
		}
		if time.Since(begin) > time.Minute {
			r.t.Fatalf("there is room again, and a put still ends with %v", err)
		}
	}
}

func (r *fullRun) stop() {
	r.t.Helper()
	if log, code := r.c.end(r.t, syscall.SIGTERM); code != exitOK {
		r.t.Fatalf("exit code %d\n%s", code, log)
	}
	if code, out, errs := tarn(r.t, nil, "check", r.dir); code != exitOK || !strings.Contains(out, fmt.Sprintf("keys      %d,", r.keys)) {
		r.t.Fatalf("%d keys should be there; check: exit code %d: %s%s", r.keys, code, out, errs)
	}
}

// run is the life of a server on a file system that gets full.
func (r *fullRun) run() {
	r.t.Helper()
	r.start()
	var err error
	for err == nil && r.keys < 1000 {
		err = r.put()
	}
	if status.Code(err) != codes.ResourceExhausted || r.keys < 10 {
		r.t.Fatalf("after %d puts: %v", r.keys, err)
	}
	r.t.Logf("%d values of 256 KiB were taken", r.keys)
	// Its own reserve is left, so nothing special is needed.
	r.delete(10)
	r.compact()

	r.takeAllRoom()
	r.wantNoSpace("with no room at all")
	r.delete(r.keys / 2)
	r.compact()
	r.stop() // the checkpoint at the end may have no room, which is no failure

	// A start with no more room than what the deletes have made.
	r.start()
	r.delete(2)
	r.compact()
	r.giveRoomBack()
	r.puttable()
	r.stop()
}

// TestZFSRefquotaReached: at the dataset's refquota puts are refused, deletes and compactions go on,
// and all goes on by itself when there is room.
func TestZFSRefquotaReached(t *testing.T) {
	pool := zfstest.New(t)
	pool.Dataset(t, "node", "-o", "refquota=128M", "-o", "recordsize=16K", "-o", "compression=lz4")
	r := &fullRun{t: t, dir: filepath.Join(pool.Path("node"), "data"), foreign: filepath.Join(pool.Path("node"), "foreign")}
	r.run()
}

// TestZFSPoolFull is the same with a pool that another dataset fills.
func TestZFSPoolFull(t *testing.T) {
	pool := zfstest.NewSized(t, 256<<20)
	pool.Dataset(t, "node", "-o", "recordsize=16K", "-o", "compression=lz4")
	pool.Dataset(t, "other")
	r := &fullRun{t: t, dir: filepath.Join(pool.Path("node"), "data"), foreign: filepath.Join(pool.Path("other"), "foreign")}
	r.run()
}
