package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// activity is something that an idle cluster does again and again.
type activity struct {
	perMinute float64
	do        func(ctx context.Context) error
}

// cluster is the clients of an idle Kubernetes cluster with one node: one
// connection and one watch for each resource.
//
// The rates were recorded between kube-apiserver 1.37, with leader election, and
// etcd. What comes less than once in two minutes (node status, the compactor) is left out.
type cluster struct {
	turn       *turn
	kvs        []pb.KVClient
	leases     pb.LeaseClient
	resources  []string // prefixes
	watches    *watches
	activities []activity

	writes  durations
	seen    atomic.Int64 // a recent revision
	renewed atomic.Int64 // updates of leases, which are watched
	asked   []atomic.Int64
}

// leasesResource is the one watched resource that is written to.
const leasesResource = 0

func newCluster(t *turn) (*cluster, error) {
	c := &cluster{turn: t, kvs: t.kv(idleConns), watches: newWatches(t.ctx), asked: make([]atomic.Int64, idleResources)}
	c.leases = pb.NewLeaseClient(t.server.conn(idleConns - 1))
	c.resources = []string{"/registry/leases/", "/registry/pods/", "/registry/events/", "/registry/minions/", "/registry/secrets/", "/registry/configmaps/"}
	for i := len(c.resources); i < idleResources; i++ {
		c.resources = append(c.resources, fmt.Sprintf("/registry/example.com/resource-%02d/", i))
	}
	for i, prefix := range c.resources {
		n, size := otherObjects, otherSize
		if prefix == "/registry/pods/" {
			n, size = idlePods, podSize
		}
		objects := newKeyset(prefix, n)
		if err := objects.fill(t.ctx, c.kvs[i:i+1], size); err != nil {
			return nil, err
		}
		c.seen.Store(objects.newest())
		if _, err := c.watches.open(t.server.conn(i), prefix, objects.newest()+1, nil); err != nil {
			return nil, err
		}
	}
	if err := c.watches.created(); err != nil {
		return nil, err
	}
	c.plan()
	return c, nil
}

// plan lists the activities.
func (c *cluster) plan() {
	add := func(perMinute float64, do func(context.Context) error) {
		c.activities = append(c.activities, activity{perMinute, do})
	}
	add(29.7, c.renew("kube-system/kube-controller-manager", 424))
	add(29.7, c.renew("kube-system/kube-scheduler", 407))
	add(5.8, c.renew("kube-node-lease/node-0", 494))
	add(5.8, c.renew("kube-system/apiserver-0", 719))
	add(6, c.announce("/registry/masterleases/10.0.0.1", 62))
	add(6, c.announce("/registry/peerserverleases/apiserver-0", 139))
	add(6, c.get("/registry/services/endpoints/default/kubernetes"))
	add(6, c.get("/registry/endpointslices/default/kubernetes"))
	add(6, c.readWhole(idleResources, "/registry/masterleases/", 0))
	add(0.8, c.get("/registry/ranges/servicenodeports"))
	add(1.2, func(ctx context.Context) error {
		_, err := countKeys(ctx, c.kvs[idleConns-1], "/registry/events/")
		return err
	})
	for i, prefix := range c.resources {
		add(0.9, c.refresh(i))
		add(0.2, c.readWhole(i, prefix, 10_000))
	}
}

// begin starts all activities, each at another point of its period, the same
// for every server. They go on until ctx ends; wait waits for that.
func (c *cluster) begin(ctx context.Context, fail context.CancelCauseFunc) (wait func()) {
	var wg sync.WaitGroup
	const golden = 0.618 // spreads the points
	for i, a := range c.activities {
		period := time.Duration(float64(time.Minute) / a.perMinute)
		_, point := math.Modf(float64(i) * golden)
		wg.Go(func() {
			if pause(ctx, time.Duration(point*float64(period))) != nil {
				return
			}
			tick := time.NewTicker(period)
			defer tick.Stop()
			for {
				// What is begun is ended: the turn's context, not ctx.
				if err := a.do(c.turn.ctx); err != nil {
					fail(err)
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return wg.Wait
}

// renew updates a lease object, of which the server knows nothing special.
func (c *cluster) renew(name string, size int) func(context.Context) error {
	key := keyset{names: []string{c.resources[leasesResource] + name}, mods: []int64{0}}
	return func(ctx context.Context) error {
		begun := time.Now()
		err := key.update(ctx, c.kvs[leasesResource], 0, newValue(size), 0)
		c.writes.add(time.Since(begun))
		c.renewed.Add(1)
		return err
	}
}

// announce writes a key with a new lease of 15 s. The old lease ends on the server,
// without a key.
func (c *cluster) announce(name string, size int) func(context.Context) error {
	key := keyset{names: []string{name}, mods: []int64{0}}
	get := c.get(name)
	return func(ctx context.Context) error {
		if err := get(ctx); err != nil {
			return err
		}
		lease, err := c.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 15})
		if err != nil {
			return err
		}
		begun := time.Now()
		err = key.update(ctx, c.kvs[idleConns-1], 0, newValue(size), lease.ID)
		c.writes.add(time.Since(begun))
		return err
	}
}

func (c *cluster) get(key string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.kvs[idleConns-1].Range(ctx, &pb.RangeRequest{Key: []byte(key), Limit: 1})
		return err
	}
}

// refresh is a consistent read from the cache of a resource: the revision, by reading
// a key that does not exist, and then a request for progress on its watch.
func (c *cluster) refresh(i int) func(context.Context) error {
	key := []byte(c.resources[i][:len(c.resources[i])-1])
	progress := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	return func(ctx context.Context) error {
		res, err := c.kvs[i].Range(ctx, &pb.RangeRequest{Key: key, Limit: 1})
		if err != nil {
			return err
		}
		c.seen.Store(res.Header.Revision)
		c.asked[i].Add(1)
		return c.watches.list[i].stream.SendMsg(progress)
	}
}

// readWhole streams a resource, at a recent revision if there is a limit.
func (c *cluster) readWhole(i int, prefix string, limit int64) func(context.Context) error {
	return func(ctx context.Context) error {
		req := &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix), Limit: limit}
		if limit > 0 {
			req.Revision = c.seen.Load()
		}
		stream, err := c.kvs[i].RangeStream(needsLeader(ctx), req)
		for err == nil {
			_, err = stream.Recv()
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
}

// check checks what the watches have got.
func (c *cluster) check() error {
	end := time.Now().Add(awaitTimeout)
	for i, w := range c.watches.list {
		var want int64
		if i == leasesResource {
			want = c.renewed.Load()
		}
		for w.events.Load() < want || w.answers.Load() < c.asked[i].Load() {
			if time.Now().After(end) {
				return fmt.Errorf("%s: %d events of %d, %d answers to %d requests for progress",
					c.resources[i], w.events.Load(), want, w.answers.Load(), c.asked[i].Load())
			}
			if err := pause(c.watches.ctx, time.Millisecond); err != nil {
				return err
			}
		}
		if got := w.events.Load(); got > want {
			return fmt.Errorf("%s: %d events of %d changes", c.resources[i], got, want)
		}
		if want == 0 && w.progress.Load() == 0 {
			return fmt.Errorf("%s: no progress message without asking for it", c.resources[i])
		}
	}
	return nil
}

// durations collects durations from many goroutines.
type durations struct {
	mu   sync.Mutex
	list []time.Duration
}

func (d *durations) add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, took)
}

// forget drops what was collected.
func (d *durations) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = nil
}

func (d *durations) all() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}
