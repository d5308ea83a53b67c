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
	pool := zfstest.NewStarving(t, "-o", "failmode=wait")
	dataset := pool.Dataset(t, "node")
	dir := filepath.Join(pool.Path("node"), "data")
	c := startChild(t, "--data-dir="+dir, "--dataset="+dataset)
	cl := (&running{url: c.url}).client(t)
	if err := put(t, cl, "key", "value"); err != nil {
		t.Fatal(err)
	}
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
	code, out, errs := tarn(t, nil, "status", "--endpoint="+c.url)
	t.Logf("status, after %v: exit code %d: %s%s", time.Since(begin).Round(time.Second), code, out, errs)
	code, out, errs = tarn(t, nil, "init", dataset, "--user="+initUser, "--backup-user=none", "--config-file="+filepath.Join(t.TempDir(), "x.yaml"))
	if code != exitRefused || !strings.Contains(errs, "zpool clear "+pool.Name) {
		t.Errorf("init: exit code %d: %s%s", code, out, errs)
	}
	feed()
	if err := putWithin(t, cl, "after", time.Minute); err != nil {
		t.Errorf("after zpool clear a put ends with %v", err)
	}
	if v := get(t, cl, "key"); v != "value" {
		t.Errorf("the value is %q", v)
	}
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, log)
	}
	if code, out, errs := tarn(t, nil, "check", dir); code != exitOK {
		t.Errorf("check: exit code %d: %s%s", code, out, errs)
	}
}

// TestZFSFailmodeContinue: ZFS answers new writes with an error, but lets a sync that has begun wait as
// with failmode=wait. So the server may end for good or go on after zpool clear; what was
// acknowledged is there in both cases.
func TestZFSFailmodeContinue(t *testing.T) {
	pool := zfstest.NewStarving(t, "-o", "failmode=continue")
	dataset := pool.Dataset(t, "node")
	dir := filepath.Join(pool.Path("node"), "data")
	c := startChild(t, "--data-dir="+dir, "--dataset="+dataset)
	cl := (&running{url: c.url}).client(t)
	if err := put(t, cl, "key", "value"); err != nil {
		t.Fatal(err)
	}
	suspend(t, pool, cl)
	pool.Feed(t)
	zfstest.Run(t, "zpool", "clear", pool.Name)
	if err := putWithin(t, cl, "after", time.Minute); err == nil {
		t.Log("the server has waited, and goes on")
		if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
			t.Errorf("exit code %d\n%s", code, log)
		}
	} else {
		t.Logf("the server has ended: %v", err)
		var log strings.Builder
		for line := range c.lines {
			log.WriteString(line + "\n")
		}
		c.Wait()
		if code := c.ProcessState.ExitCode(); code != exitStoreFailed || !strings.Contains(log.String(), "nothing more is served") {
			t.Errorf("exit code %d\n%s", code, log.String())
		}
	}
	c = startChild(t, "--data-dir="+dir, "--dataset="+dataset)
	cl = (&running{url: c.url}).client(t)
	if v := get(t, cl, "key"); v != "value" {
		t.Errorf("the value is %q", v)
	}
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, log)
	}
}
