package main

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const deleteSize = 512

// deleteMany deletes all keys of a prefix, which one watch wants, in one call.
func deleteMany(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	kvs := t.kv(3)
	keys := newKeyset("/registry/authrequests/", pick(t, 50_000, 10_000))
	if err := keys.fill(t.ctx, kvs, deleteSize); err != nil {
		return err
	}
	t.measure(fmt.Sprintf("%d keys", len(keys.names)), func(set setter) error { return deleteCase(t, kvs[1], keys, set) })
	return nil
}

func deleteCase(t *turn, kv pb.KVClient, keys *keyset, set setter) error {
	w := newWatches(t.ctx)
	deletions := 0
	_, err := w.open(t.server.conn(2), keys.prefix, keys.newest()+1, func(_, value []byte) {
		if value == nil {
			deletions++
		}
	})
	if err == nil {
		err = w.created()
	}
	if err != nil {
		return errors.Join(err, w.close())
	}
	f, err := startForeground(t.ctx, t)
	if err != nil {
		return errors.Join(err, w.close())
	}
	var answered time.Duration
	u, err := t.using(func() error {
		f.begin()
		defer f.end()
		res, err := kv.DeleteRange(t.ctx, &pb.DeleteRangeRequest{Key: []byte(keys.prefix), RangeEnd: prefixEnd(keys.prefix)})
		answered = time.Since(f.from)
		if err != nil {
			return err
		}
		if res.Deleted != int64(len(keys.names)) {
			return fmt.Errorf("%d of %d keys were deleted", res.Deleted, len(keys.names))
		}
		return w.await(len(keys.names))
	})
	err = errors.Join(err, f.report(t.ctx, set), w.close())
	if err != nil {
		return err
	}
	if deletions != len(keys.names) {
		return fmt.Errorf("%d of %d events are deletions", deletions, len(keys.names))
	}
	left, err := countKeys(t.ctx, kv, keys.prefix)
	if err == nil && left != 0 {
		err = fmt.Errorf("%d keys are left", left)
	}
	set("ms to the answer", millis(answered))
	set("ms to the last event", millis(u.wall))
	set("CPU ms", u.cpuMilli(1))
	set("peak resident MB", float64(u.resident)/mega)
	return err
}
