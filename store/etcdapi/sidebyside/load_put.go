package main

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	putKeys  = 1000
	putSize  = 1024
	putConns = 4
)

// put updates keys with 1, 16 and 128 calls under way.
func put(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	kvs := t.kv(putConns)
	keys := newKeyset("/registry/configmaps/", putKeys)
	if err := keys.fill(t.ctx, kvs, putSize); err != nil {
		return err
	}
	for _, clients := range []int{1, 16, 128} {
		t.measure(fmt.Sprintf("%d at a time", clients), func(set setter) error {
			err := putCase(t, kvs, keys, clients, set)
			if err == nil && !t.spec.floor {
				err = checkKeys(t.ctx, kvs[0], keys, putSize)
			}
			return err
		})
	}
	return nil
}

func putCase(t *turn, kvs []pb.KVClient, keys *keyset, clients int, set setter) error {
	before, err := headRevision(t.ctx, kvs[0])
	if err != nil {
		return err
	}
	var l load
	u, err := t.using(func() (err error) {
		l, err = flatOut(t.ctx, clients, pick(t, 2*time.Second, time.Second), keys.updates(kvs, clients, putSize))
		return err
	})
	if err != nil {
		return err
	}
	after, err := headRevision(t.ctx, kvs[0])
	if err != nil {
		return err
	}
	n := len(l.samples)
	if after-before != int64(n) {
		return fmt.Errorf("%d updates made %d revisions", n, after-before)
	}
	took := l.all()
	set("updates/s", l.rate())
	set("p50 ms", quantile(took, 0.5))
	set("p99 ms", quantile(took, 0.99))
	set("CPU ms per 1,000", u.cpuMilli(n)*1000)
	set("written KB per 1,000", float64(u.written)/1024/float64(n)*1000)
	set("peak resident MB", float64(u.resident)/mega)
	return nil
}

// checkKeys compares what is stored with what was acknowledged.
func checkKeys(ctx context.Context, kv pb.KVClient, keys *keyset, valueSize int) error {
	res, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(keys.prefix), RangeEnd: prefixEnd(keys.prefix)})
	if err != nil {
		return err
	}
	if len(res.Kvs) != len(keys.names) {
		return fmt.Errorf("there are %d keys, not %d", len(res.Kvs), len(keys.names))
	}
	for i, item := range res.Kvs {
		if string(item.Key) != keys.names[i] || item.ModRevision != keys.mods[i] || len(item.Value) != valueSize {
			return fmt.Errorf("there is %s with %d bytes at revision %d: %s was written last with %d bytes at %d",
				item.Key, len(item.Value), item.ModRevision, keys.names[i], valueSize, keys.mods[i])
		}
	}
	return nil
}
