package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	crashSharedKeys = 40
	crashLongTTL    = 1000 // seconds, more than a round takes
	crashMaxLeases  = 6    // per client
)

// crashClient writes as the controllers of a Kubernetes cluster do.
type crashClient struct {
	number int
	keys   int // how many keys all clients share
	rnd    *rand.Rand
	hist   *crashHistory
	mods   map[string]int64 // mod_revision of shared keys, as last seen
	leases []*crashLease
	grants int64

	kv    etcdserverpb.KVClient
	lease etcdserverpb.LeaseClient
}

func newCrashClient(number int, seed uint64, h *crashHistory) *crashClient {
	return &crashClient{number: number, keys: crashSharedKeys, rnd: rand.New(rand.NewPCG(seed, uint64(number)+1)), hist: h, mods: make(map[string]int64)}
}

// run writes until the server ends. An error is a wrong answer.
func (c *crashClient) run(ctx context.Context, conn *grpc.ClientConn) error {
	c.kv, c.lease = etcdserverpb.NewKVClient(conn), etcdserverpb.NewLeaseClient(conn)
	c.leases = c.hist.alive(c.leases)
	for {
		if err := c.step(ctx); unanswered(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("client %d: %w", c.number, err)
		}
	}
}

// unanswered tells that the outcome of a request is not known.
func unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled:
		return true
	}
	return false
}

func (c *crashClient) step(ctx context.Context) error {
	switch n := c.rnd.IntN(100); {
	case n < 70:
		return c.write(ctx, c.change())
	case n < 80:
		d := c.change()
		d.del = d.mod != 0
		return c.write(ctx, d)
	case n < 88:
		a, b := c.change(), c.change()
		if a.key == b.key {
			return c.write(ctx, a)
		}
		return c.write(ctx, a, b)
	case n < 92 && len(c.leases) < crashMaxLeases:
		return c.grant(ctx)
	case n < 96 && len(c.leases) > 0:
		return c.attach(ctx, c.leases[c.rnd.IntN(len(c.leases))])
	case n < 98 && len(c.leases) > 0:
		if l := c.leases[c.rnd.IntN(len(c.leases))]; !l.abandoned() {
			return c.renew(ctx, l)
		}
	case len(c.leases) == crashMaxLeases:
		return c.revoke(ctx)
	}
	return c.write(ctx, c.change())
}

// change is a put of a shared key, guarded by what the client knows of it.
func (c *crashClient) change() crashChange {
	kinds := []string{"pods", "configmaps"}
	key := fmt.Sprintf("/registry/%s/%d", kinds[c.rnd.IntN(len(kinds))], c.rnd.IntN(c.keys/len(kinds)))
	size := 200 + c.rnd.IntN(2000)
	if c.rnd.IntN(50) == 0 {
		size = 100_000
	}
	return crashChange{key: key, mod: c.mods[key], size: size}
}

func (c *crashClient) write(ctx context.Context, changes ...crashChange) error {
	a := c.hist.begin(0, changes...)
	resp, err := c.kv.Txn(ctx, a.request())
	switch {
	case status.Code(err) == codes.NotFound && changes[0].lease != 0:
		c.hist.refuse(a, 0)
		return c.expired(ctx, changes[0].lease)
	case err != nil:
		return err
	case !resp.Succeeded:
		c.hist.refuse(a, resp.Header.Revision)
		for i, ch := range changes {
			c.mods[ch.key] = 0
			if kvs := resp.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
				c.mods[ch.key] = kvs[0].ModRevision
			}
		}
		return nil
	}
	c.hist.acknowledge(a, resp.Header.Revision)
	for _, ch := range changes {
		c.mods[ch.key] = resp.Header.Revision
		if ch.del {
			c.mods[ch.key] = 0
		}
	}
	return nil
}

func (c *crashClient) grant(ctx context.Context) error {
	c.grants++
	l := &crashLease{id: int64(c.number+1)<<32 + c.grants, ttl: crashLongTTL + c.rnd.Int64N(8000), renewed: time.Now()}
	if c.rnd.IntN(4) == 0 {
		l.ttl = 2
	}
	resp, err := c.lease.LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{ID: l.id, TTL: l.ttl})
	if err != nil {
		return err
	}
	if resp.ID != l.id || resp.TTL != l.ttl {
		return fmt.Errorf("lease %x of %d s: granted %x of %d s", l.id, l.ttl, resp.ID, resp.TTL)
	}
	c.hist.granted(l)
	c.leases = append(c.leases, l)
	return nil
}

// attach creates a key that lives as long as the lease.
func (c *crashClient) attach(ctx context.Context, l *crashLease) error {
	c.grants++
	return c.write(ctx, crashChange{key: fmt.Sprintf("/registry/leases/%x/%d", l.id, c.grants), size: 300, lease: l.id})
}

func (c *crashClient) renew(ctx context.Context, l *crashLease) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := time.Now()
	stream, err := c.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: l.id}); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	resp, err := stream.Recv()
	if err != nil {
		return err
	}
	if resp.TTL != l.ttl && (resp.TTL != 0 || l.long()) {
		return fmt.Errorf("renewal of lease %x of %d s: %d s", l.id, l.ttl, resp.TTL)
	}
	if resp.TTL > 0 {
		c.hist.renewed(l, sent)
	}
	return nil
}

// revoke ends the oldest lease that is not left to expire.
func (c *crashClient) revoke(ctx context.Context) error {
	for i, l := range c.leases {
		if !l.abandoned() {
			c.leases = slices.Delete(c.leases, i, i+1)
			return c.end(ctx, l)
		}
	}
	return nil
}

// expired: a lease that takes no key any more can not be revoked either.
func (c *crashClient) expired(ctx context.Context, id int64) error {
	i := slices.IndexFunc(c.leases, func(l *crashLease) bool { return l.id == id })
	l := c.leases[i]
	c.leases = slices.Delete(c.leases, i, i+1)
	if l.long() {
		return fmt.Errorf("lease %x of %d s is not known any more", l.id, l.ttl)
	}
	return c.end(ctx, l)
}

// end revokes a lease.
func (c *crashClient) end(ctx context.Context, l *crashLease) error {
	a := c.hist.begin(l.id)
	resp, err := c.lease.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: l.id})
	switch {
	case status.Code(err) == codes.NotFound && !l.long():
		c.hist.refuse(a, 0)
		return nil
	case err != nil:
		return err
	}
	c.hist.acknowledge(a, resp.Header.Revision)
	return nil
}
