//go:build zfs

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// putWithin is a put that gives up after some time.
func putWithin(t *testing.T, cl *client, key string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := etcdserverpb.NewKVClient(cl).Put(ctx, &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte("value")})
	return err
}

// starvingServer is a server on a dataset of a pool whose device can be taken away. It has stored a key.
type starvingServer struct {
	pool  *zfstest.Starving
	flags []string
	dir   string
	*child
	cl *client
}

func startStarving(t *testing.T, failmode string) *starvingServer {
	t.Helper()
	s := &starvingServer{pool: zfstest.NewStarving(t, "-o", "failmode="+failmode)}
	dataset := s.pool.Dataset(t, "node")
	s.dir = filepath.Join(s.pool.Path("node"), "data")
	s.flags = []string{"--data-dir=" + s.dir, "--dataset=" + dataset}
	s.start(t)
	if err := put(t, s.cl, "key", "value"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *starvingServer) start(t *testing.T) {
	t.Helper()
	s.child = startChild(t, s.flags...)
	s.cl = (&running{url: s.url}).client(t)
}

// ends checks that the key is there and that the server stops when it is told to.
func (s *starvingServer) ends(t *testing.T) {
	t.Helper()
	if v := get(t, s.cl, "key"); v != "value" {
		t.Errorf("the value is %q", v)
	}
	if log, code := s.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, log)
	}
}

// suspend takes the device away and writes until ZFS has noticed. It returns the keys whose
// fate is open.
func suspend(t *testing.T, pool *zfstest.Starving, cl *client) (open []string) {
	t.Helper()
	pool.Starve(t)
	for n := range 1000 {
		key := fmt.Sprintf("open-%d", n)
		if err := putWithin(t, cl, key, time.Second); err != nil {
			open = append(open, key)
		}
		if zfstest.Run(t, "zpool", "list", "-Ho", "health", pool.Name) == "SUSPENDED" {
			return open
		}
	}
	t.Fatal("the pool is not suspended")
	return nil
}

// TestZFSSuspended: while the pool is suspended, writes wait and nothing is acknowledged; reads and
// whoever asks for the state get their answers; and after zpool clear all goes on by itself.
func TestZFSSuspended(t *testing.T) {
	s := startStarving(t, "wait")
	pool, cl := s.pool, s.cl
	suspend(t, pool, cl)
	fed := false
	feed := func() {
		if !fed {
			fed = true
			pool.Feed(t)
			zfstest.Run(t, "zpool", "clear", pool.Name)
		}
	}
	t.Cleanup(feed) // what hangs can not be ended

	if err := putWithin(t, cl, "late", 3*time.Second); err == nil {
		t.Error("a put was acknowledged while the pool was suspended")
	}
	serializable := func() (*etcdserverpb.RangeResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return etcdserverpb.NewKVClient(cl).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("key"), Serializable: true})
	}
	if r, err := serializable(); err != nil || len(r.Kvs) != 1 {
		t.Errorf("a read while the pool is suspended: %v, %v", r, err)
	}
	begin := time.Now()
	code, out, errs := tarn(t, nil, "status", "--endpoint="+s.url)
	t.Logf("status, after %v: exit code %d: %s%s", time.Since(begin).Round(time.Second), code, out, errs)
	code, out, errs = tarn(t, nil, "init", pool.Name+"/node", "--user="+initUser, "--backup-user=none", "--config-file="+filepath.Join(t.TempDir(), "x.yaml"))
	if code != exitRefused || !strings.Contains(errs, "zpool clear "+pool.Name) {
		t.Errorf("init: exit code %d: %s%s", code, out, errs)
	}
	feed()
	if err := putWithin(t, cl, "after", time.Minute); err != nil {
		t.Errorf("after zpool clear a put ends with %v", err)
	}
	s.ends(t)
	if code, out, errs := tarn(t, nil, "check", s.dir); code != exitOK {
		t.Errorf("check: exit code %d: %s%s", code, out, errs)
	}
}

// TestZFSFailmodeContinue: ZFS answers new writes with an error, but lets a sync that has begun wait as
// with failmode=wait. So the server may end for good or go on after zpool clear; what was
// acknowledged is there in both cases.
func TestZFSFailmodeContinue(t *testing.T) {
	s := startStarving(t, "continue")
	suspend(t, s.pool, s.cl)
	s.pool.Feed(t)
	zfstest.Run(t, "zpool", "clear", s.pool.Name)
	if err := putWithin(t, s.cl, "after", time.Minute); err == nil {
		t.Log("the server has waited, and goes on")
		s.ends(t)
	} else {
		t.Logf("the server has ended: %v", err)
		var log strings.Builder
		for line := range s.lines {
			log.WriteString(line + "\n")
		}
		s.Wait()
		if code := s.ProcessState.ExitCode(); code != exitStoreFailed || !strings.Contains(log.String(), "nothing more is served") {
			t.Errorf("exit code %d\n%s", code, log.String())
		}
	}
	s.start(t)
	s.ends(t)
}
