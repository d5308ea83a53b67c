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
	versions := int64(putKeys)
	for _, clients := range []int{1, 16, 128} {
		t.measure(fmt.Sprintf("%d at a time", clients), func(set setter) error {
			n, err := putCase(t, kvs, keys, clients, set)
			versions += int64(n)
			if err == nil && !t.spec.floor {
				err = checkVersions(t.ctx, kvs[0], keys, versions)
			}
			return err
		})
	}
	return nil
}

// putCase returns the number of updates.
func putCase(t *turn, kvs []pb.KVClient, keys *keyset, clients int, set setter) (int, error) {
	before, err := headRevision(t.ctx, kvs[0])
	if err != nil {
		return 0, err
	}
	var l load
	u, err := t.using(func() (err error) {
		l, err = flatOut(t.ctx, clients, pick(t, 2*time.Second, time.Second), keys.updates(kvs, clients, putSize))
		return err
	})
	n := len(l.samples)
	if err != nil {
		return n, err
	}
	after, err := headRevision(t.ctx, kvs[0])
	if err != nil {
		return n, err
	}
	if after-before != int64(n) {
		return n, fmt.Errorf("%d updates made %d revisions", n, after-before)
	}
	took := l.all()
	set("updates/s", l.rate())
	set("p50 ms", quantile(took, 0.5))
	set("p99 ms", quantile(took, 0.99))
	set("CPU ms per 1,000", u.cpuMilli(n)*1000)
	set("written KB per 1,000", float64(u.written)/1024/float64(n)*1000)
	set("peak resident MB", float64(u.resident)/mega)
	return n, nil
}

// checkVersions adds up how often each key was written, and compares its revision.
func checkVersions(ctx context.Context, kv pb.KVClient, keys *keyset, want int64) error {
	res, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(keys.prefix), RangeEnd: prefixEnd(keys.prefix)})
	if err != nil {
		return err
	}
	if len(res.Kvs) != len(keys.names) {
		return fmt.Errorf("there are %d keys, not %d", len(res.Kvs), len(keys.names))
	}
	var sum int64
	for i, item := range res.Kvs {
		sum += item.Version
		if string(item.Key) != keys.names[i] || item.ModRevision != keys.mods[i] {
			return fmt.Errorf("key %s is at revision %d: %s was written last at %d", item.Key, item.ModRevision, keys.names[i], keys.mods[i])
		}
	}
	if sum != want {
		return fmt.Errorf("the keys were written %d times and have %d versions", want, sum)
	}
	return nil
}
