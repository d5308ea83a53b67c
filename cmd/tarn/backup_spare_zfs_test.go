//go:build zfs

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// localSSH puts a program called ssh on the path that runs the command here.
func localSSH(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -o|-p|-l) shift 2;; --) shift; break;; *) exit 99;; esac; done\nshift\nexec sh -c \"$*\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestZFSWarmSpare goes through the take-over of the manual: a machine pushes its
// snapshots to a spare, is lost at some moment, and the spare serves what was
// acknowledged before the last snapshot that arrived, and nothing else.
func TestZFSWarmSpare(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	localSSH(t)
	machine, spare := zfstest.New(t), zfstest.New(t)
	machine.Dataset(t, "tarn", "-o", "recordsize=16K")
	dir := machine.Path("tarn")
	spare.Dataset(t, "backups", "-o", "canmount=off")
	target := "ssh://spare/" + spare.Name + "/backups/tarn"

	server := startChild(t, "--data-dir="+dir)
	client := (&running{url: server.url}).client(t)
	ctx, lost := context.WithCancel(t.Context())
	defer lost()
	var acked atomic.Int64
	written := make(chan error, 1)
	go func() {
		for i := int64(1); ; i++ {
			if err := put(t, client, fmt.Sprintf("/registry/events/e%08d", i), strings.Repeat("x", 500)); err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				written <- err
				return
			}
			acked.Store(i)
		}
	}()
	run := func(args ...string) time.Duration {
		t.Helper()
		begin := time.Now()
		if code, out, errs := tarn(t, nil, args...); code != exitOK {
			t.Fatalf("tarn %s: exit code %d: %s%s", strings.Join(args, " "), code, out, errs)
		}
		return time.Since(begin)
	}
	var safe int64 // acknowledged before the last snapshot that arrived
	for round := range 5 {
		before := acked.Load()
		made := run("snapshot", "create", "--data-dir="+dir, "--endpoint="+server.url)
		pushed := run("backup", "push", target, "--data-dir="+dir)
		safe = before
		t.Logf("round %d: snapshot %s, push %s, %d writes so far", round, made.Round(time.Millisecond), pushed.Round(time.Millisecond), acked.Load())
		time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
	}
	// The machine is lost.
	lost()
	server.Process.Kill()
	server.Wait()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	promised := acked.Load()

	// The take-over.
	spare.Dataset(t, "live", "-o", "recordsize=16K")
	restored := run("restore", "newest", "--from="+spare.Name+"/backups/tarn", "--data-dir="+spare.Path("live"))
	begin := time.Now()
	server = startChild(t, "--data-dir="+spare.Path("live"))
	client = (&running{url: server.url}).client(t)
	asking, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	r, err := etcdserverpb.NewKVClient(client).Range(asking, &etcdserverpb.RangeRequest{Key: []byte("/registry/events/"), RangeEnd: []byte("/registry/events0"), KeysOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	started := time.Since(begin)
	for i, kv := range r.Kvs {
		if want := fmt.Sprintf("/registry/events/e%08d", i+1); string(kv.Key) != want {
			t.Fatalf("key %d is %s: a hole", i, kv.Key)
		}
	}
	switch n := int64(len(r.Kvs)); {
	case n < safe:
		t.Errorf("the spare has %d writes; %d were acknowledged before the last snapshot that arrived", n, safe)
	case n > promised+1:
		t.Errorf("the spare has %d writes, and %d were acknowledged", n, promised)
	}
	if r.Header.Revision <= promised+1 {
		t.Errorf("the revision on the spare is %d: clients have seen %d", r.Header.Revision, promised+1)
	}
	t.Logf("take-over: restore %s, start until the first answer %s; %d of %d acknowledged writes are lost, those after the last snapshot",
		restored.Round(time.Millisecond), started.Round(time.Millisecond), promised-int64(len(r.Kvs)), promised)
	if err := put(t, client, "/registry/events/after", "x"); err != nil {
		t.Error(err)
	}

	// The machine comes back: what it holds must not be pushed over the spare, nor the other way round.
	run("snapshot", "create", "--data-dir="+spare.Path("live"), "--endpoint="+server.url)
	code, _, errs := tarn(t, nil, "backup", "push", spare.Name+"/backups/tarn", "--dataset="+spare.Name+"/live")
	if code != exitBackupRefused || !strings.Contains(errs, "no snapshot in common") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	run("backup", "push", machine.Name+"/back", "--dataset="+spare.Name+"/live")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Error("the lost machine's data is gone")
	}
}
