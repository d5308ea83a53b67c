package main

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	historyWorkers = 64
	historySize    = 1024
)

// writeHistory makes one revision after the other.
func writeHistory(ctx context.Context, kvs []pb.KVClient, keys *keyset, revisions, valueSize int) error {
	_, err := times(ctx, historyWorkers, revisions, keys.updates(kvs, historyWorkers, valueSize))
	if err != nil {
		return fmt.Errorf("write a history of %d revisions: %w", revisions, err)
	}
	return nil
}

// catchUp begins watches at the start of a history, which the server has to read again.
func catchUp(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	revisions := pick(t, 20_000, 5_000)
	kvs := t.kv(4)
	keys := newKeyset("/registry/pods/", 1000)
	if err := keys.fill(t.ctx, kvs, historySize); err != nil {
		return err
	}
	start := keys.newest() + 1
	if err := writeHistory(t.ctx, kvs, keys, revisions, historySize); err != nil {
		return err
	}
	for _, n := range []int{1, 10} {
		if err := t.restart(); err != nil {
			return err
		}
		t.measure(fmt.Sprintf("%d at a time, %d revisions", n, revisions), func(set setter) error {
			return catchUpCase(t, keys.prefix, start, n, revisions, set)
		})
	}
	return nil
}

func catchUpCase(t *turn, prefix string, start int64, n, revisions int, set setter) error {
	w := newWatches(t.ctx)
	u, err := t.using(func() error {
		for i := range n {
			if _, err := w.open(t.server.conn(i), prefix, start, nil); err != nil {
				return err
			}
		}
		return w.await(revisions)
	})
	if closed := w.close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	events := n * revisions
	set("events/s", float64(events)/u.wall.Seconds())
	set("CPU µs per event", u.cpuMilli(events)*1000)
	set("peak heap and stacks MB", float64(u.private)/mega)
	set("peak resident MB", float64(u.resident)/mega)
	return nil
}
