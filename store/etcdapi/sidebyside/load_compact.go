package main

import (
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	compactKeys = 2000
	compactSize = 512
	compactKeep = 500 // revisions that stay
)

// compact compacts nearly all of a long history.
func compact(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	kvs := t.kv(4)
	keys := newKeyset("/registry/pods/", compactKeys)
	if err := keys.fill(t.ctx, kvs, compactSize); err != nil {
		return err
	}
	revisions := pick(t, 30_000, 8_000)
	if err := writeHistory(t.ctx, kvs, keys, revisions, compactSize); err != nil {
		return err
	}
	t.measure(fmt.Sprintf("%d revisions", revisions), func(set setter) error { return compactCase(t, kvs[1], keys, set) })
	return nil
}

func compactCase(t *turn, kv pb.KVClient, keys *keyset, set setter) error {
	f, err := startForeground(t.ctx, t)
	if err != nil {
		return err
	}
	at := keys.newest() - compactKeep
	u, err := t.using(func() error {
		f.begin()
		defer f.end()
		_, err := kv.Compact(t.ctx, &pb.CompactionRequest{Revision: at, Physical: true})
		return err
	})
	err = errors.Join(err, f.report(t.ctx, set))
	if err == nil {
		err = checkCompacted(t, kv, keys, at)
	}
	if err != nil {
		return err
	}
	disk, err := t.diskUse()
	if err != nil {
		return err
	}
	set("ms", millis(u.wall))
	set("CPU ms", u.cpuMilli(1))
	set("written MB", float64(u.written)/mega)
	set("directory MB after", float64(disk)/mega)
	return nil
}

// checkCompacted checks that old revisions are gone and that no key is.
func checkCompacted(t *turn, kv pb.KVClient, keys *keyset, at int64) error {
	old := &pb.RangeRequest{Key: []byte(keys.names[0]), Revision: at - 1}
	if _, err := kv.Range(t.ctx, old); status.Code(err) != codes.OutOfRange {
		return fmt.Errorf("reading revision %d after compacting to %d: got %v instead of OutOfRange", at-1, at, err)
	}
	n, err := countKeys(t.ctx, kv, keys.prefix)
	if err == nil && n != int64(len(keys.names)) {
		err = fmt.Errorf("%d of %d keys are left after the compaction", n, len(keys.names))
	}
	return err
}
