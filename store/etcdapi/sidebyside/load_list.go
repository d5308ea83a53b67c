package main

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	listKeys  = 10_000
	listSize  = 1024
	listTime  = 700 * time.Millisecond // of lists of one kind
	listLeast = 3                      // lists of one kind
	stormSize = 50
)

// listKind is a way to list all keys.
type listKind struct {
	name  string
	floor bool // the floor has an answer
	keys  int  // that have to come
	bytes int  // that have to come at least
	do    func(ctx context.Context, c *listClient) (listed, error)
}

func listKinds(keys *keyset) []listKind {
	whole := func(stream bool, change func(*pb.RangeRequest)) func(context.Context, *listClient) (listed, error) {
		req := &pb.RangeRequest{Key: []byte(keys.prefix), RangeEnd: prefixEnd(keys.prefix)}
		if change != nil {
			change(req)
		}
		return func(ctx context.Context, c *listClient) (listed, error) { return c.list(ctx, stream, req) }
	}
	n, names, all := len(keys.names), len(keys.names)*len(keys.names[0]), len(keys.names)*listSize
	return []listKind{
		{"full", true, n, all, whole(false, nil)},
		{"RangeStream", true, n, all, whole(true, nil)},
		{"pages of 500", false, n, all, func(ctx context.Context, c *listClient) (listed, error) { return c.listPages(ctx, keys) }},
		{"keys only", false, n, names, whole(false, func(r *pb.RangeRequest) { r.KeysOnly = true })},
		{"count", false, 0, 0, whole(false, func(r *pb.RangeRequest) { r.CountOnly = true })},
	}
}

// check compares a list with what is stored.
func (k listKind) check(got listed, stored int) error {
	if got.keys != k.keys || got.count != int64(stored) || got.more || got.bytes < int64(k.bytes) {
		return fmt.Errorf("a list brought %d keys of %d, %d bytes of at least %d, count %d, more %v", got.keys, k.keys, got.bytes, k.bytes, got.count, got.more)
	}
	return nil
}

// list lists in all ways one after the other, and then in two ways fifty times at once.
func list(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	keys := newKeyset(listPrefix, listKeys)
	if !t.spec.floor {
		if err := keys.fill(t.ctx, t.kv(2), listSize); err != nil {
			return err
		}
	}
	kinds := listKinds(keys)
	for _, k := range kinds {
		if t.spec.floor && !k.floor {
			continue
		}
		t.measure(k.name, func(set setter) error { return listCase(t, k, set) })
	}
	for _, k := range kinds[:2] { // the whole list, as one message and as a stream
		if err := t.restart(); err != nil {
			return err
		}
		t.measure(fmt.Sprintf("%d × %s", stormSize, k.name), func(set setter) error { return stormCase(t, k, set) })
	}
	return nil
}

func listCase(t *turn, k listKind, set setter) error {
	c := newListClient(t.server.addr)
	defer c.close()
	if _, err := k.do(t.ctx, c); err != nil { // connects
		return err
	}
	var took []time.Duration
	u, err := t.using(func() error {
		for begun := time.Now(); len(took) < listLeast || time.Since(begun) < pick(t, listTime, listTime/3); {
			got, d, err := timed(func() (listed, error) { return k.do(t.ctx, c) })
			if err == nil {
				err = k.check(got, listKeys)
			}
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	set("ms per list", quantile(took, 0.5))
	set("CPU ms per list", u.cpuMilli(len(took)))
	return nil
}

// stormCase has each of many clients list once.
func stormCase(t *turn, k listKind, set setter) error {
	var l load
	u, err := t.using(func() (err error) {
		l, err = times(t.ctx, stormSize, stormSize, func(ctx context.Context, _, _ int) error {
			c := newListClient(t.server.addr)
			defer c.close()
			got, err := k.do(ctx, c)
			if err == nil {
				err = k.check(got, listKeys)
			}
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	set("lists/s", l.rate())
	set("CPU ms per list", u.cpuMilli(stormSize))
	set("peak heap and stacks MB", float64(u.private)/mega)
	set("peak resident MB", float64(u.resident)/mega)
	return nil
}
