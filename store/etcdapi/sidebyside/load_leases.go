package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	leaseTTL  = 5 * time.Second // granting takes some of it
	leaseSize = 256
)

// leases grants many leases, each with a key, as fast as possible, so that they end
// at nearly the same time.
func leases(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	l := &leaseCase{turn: t, keys: newKeyset("/registry/events/", pick(t, 2000, 500))}
	l.granted = make([]span, len(l.keys.names))
	l.gone = make([]time.Time, len(l.keys.names))
	t.measure(fmt.Sprintf("%d leases", len(l.keys.names)), l.run)
	return nil
}

type leaseCase struct {
	*turn
	keys    *keyset
	granted []span // by key: the call
	mu      sync.Mutex
	gone    []time.Time // by key: when its deletion arrived
}

// span is the time from a call to its answer.
type span struct{ from, to time.Time }

func (l *leaseCase) run(set setter) error {
	w := newWatches(l.ctx)
	_, err := w.open(l.server.conn(2), l.keys.prefix, 0, l.note)
	if err == nil {
		err = w.created()
	}
	if err != nil {
		return errors.Join(err, w.close())
	}
	if err := l.grantAll(); err != nil {
		return errors.Join(err, w.close())
	}
	f, err := startForeground(l.ctx, l.turn)
	if err != nil {
		return errors.Join(err, w.close())
	}
	n := len(l.keys.names)
	u, err := l.using(func() error {
		f.begin()
		if first := l.granted[0].to.Add(leaseTTL); first.After(f.from) {
			f.from = first
		}
		defer f.end()
		return w.await(2 * n) // each key comes and goes
	})
	if err = errors.Join(err, f.report(l.ctx, set), w.close()); err != nil {
		return err
	}
	late := make([]time.Duration, n)
	for i, at := range l.gone {
		if at.Before(l.granted[i].from.Add(leaseTTL)) {
			return fmt.Errorf("%s was deleted %v after its lease was asked for, which is before its end", l.keys.names[i], at.Sub(l.granted[i].from))
		}
		late[i] = at.Sub(l.granted[i].to.Add(leaseTTL))
	}
	set("half gone, ms after their end", quantile(late, 0.5))
	set("all gone, ms after their end", quantile(late, 1))
	set("CPU ms", u.cpuMilli(1))
	set("written KB", float64(u.written)/1024)
	return nil
}

func (l *leaseCase) grantAll() error {
	granter := pb.NewLeaseClient(l.server.conn(1))
	kv := pb.NewKVClient(l.server.conn(1))
	_, err := times(l.ctx, lone, len(l.keys.names), func(ctx context.Context, _, i int) error {
		begun := time.Now()
		res, err := granter.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(leaseTTL / time.Second)})
		if err != nil {
			return err
		}
		if res.TTL != int64(leaseTTL/time.Second) {
			return fmt.Errorf("a lease of %v was granted for %d s", leaseTTL, res.TTL)
		}
		l.granted[i] = span{begun, time.Now()}
		return l.keys.update(ctx, kv, i, newValue(leaseSize), res.ID)
	})
	return err
}

// note takes the events of the watch.
func (l *leaseCase) note(key, value []byte) {
	_, digits, _ := strings.Cut(string(key[len(l.keys.prefix):]), "-")
	i, err := strconv.Atoi(digits)
	if err != nil || value != nil || i >= len(l.gone) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[i] = time.Now()
}
