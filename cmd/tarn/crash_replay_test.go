package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// replay applies the events of a watch of everything, up to the revision end.
// Nothing that was acknowledged may be missing then. No client is running.
func (h *crashHistory) replay(events []*mvccpb.Event, end int64) error {
	if err := h.advance(h.byRevision(), events, end); err != nil {
		return err
	}
	return h.settle()
}

// byRevision sorts the writes by their revision, 0 if that is not known.
func (h *crashHistory) byRevision() map[int64][]*attempt {
	byRev := make(map[int64][]*attempt)
	for _, a := range h.attempts {
		byRev[a.rev] = append(byRev[a.rev], a)
	}
	return byRev
}

// advance applies the next events, up to the revision end, and finds for each
// revision the write that has made it.
func (h *crashHistory) advance(byRev map[int64][]*attempt, events []*mvccpb.Event, end int64) error {
	for len(events) > 0 {
		rev := events[0].Kv.ModRevision
		if rev != h.rev+1 {
			return fmt.Errorf("after revision %d the watch shows revision %d", h.rev, rev)
		}
		n := slices.IndexFunc(events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision != rev })
		if n < 0 {
			n = len(events)
		}
		if err := h.explain(events[:n], slices.Concat(byRev[rev], byRev[0])); err != nil {
			return err
		}
		for _, e := range events[:n] {
			if err := h.apply(e); err != nil {
				return err
			}
		}
		h.rev = rev
		h.revisions++
		events = events[n:]
	}
	if h.rev != end {
		return fmt.Errorf("the watch ends at revision %d instead of %d", h.rev, end)
	}
	return nil
}

// explain finds the write of one revision among those that it can be of.
func (h *crashHistory) explain(events []*mvccpb.Event, candidates []*attempt) error {
	for _, a := range candidates {
		if !a.done && h.matches(a, events) {
			a.done = true
			if a.rev == 0 {
				h.kept++
			}
			return nil
		}
	}
	if h.expired(events) {
		h.expiries++
		return nil
	}
	return fmt.Errorf("nobody has written this, or not all of it is there: %v and %d more", describe(events[0]), len(events)-1)
}

// matches tells whether events are all that the attempt would do now.
func (h *crashHistory) matches(a *attempt, events []*mvccpb.Event) bool {
	if a.lease != 0 {
		return h.endsLease(a.lease, events)
	}
	if len(events) != len(a.changes) {
		return false
	}
	for i := range a.changes {
		c, e := &a.changes[i], events[i]
		if string(e.Kv.Key) != c.key || h.state[c.key].GetModRevision() != c.mod || c.del != (e.Type == mvccpb.Event_DELETE) {
			return false
		}
		if !c.del && (string(e.Kv.Value) != a.value(c) || e.Kv.Lease != c.lease) {
			return false
		}
	}
	return true
}

// endsLease tells whether events delete exactly the keys of a lease, in order.
func (h *crashHistory) endsLease(id int64, events []*mvccpb.Event) bool {
	keys := h.keysOf(id)
	if len(keys) != len(events) {
		return false
	}
	for i, e := range events {
		if e.Type != mvccpb.Event_DELETE || string(e.Kv.Key) != keys[i] {
			return false
		}
	}
	return true
}

func (h *crashHistory) keysOf(lease int64) []string {
	var keys []string
	for k, kv := range h.state {
		if kv.Lease == lease {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// expired tells whether events are the end of a short lease whose time was up.
func (h *crashHistory) expired(events []*mvccpb.Event) bool {
	l := h.leases[h.state[string(events[0].Kv.Key)].GetLease()]
	return l != nil && !l.long() && time.Since(l.renewed) >= time.Duration(l.ttl)*time.Second && h.endsLease(l.id, events)
}

// apply takes an event into the state, if it is what the state makes likely.
func (h *crashHistory) apply(e *mvccpb.Event) error {
	key := string(e.Kv.Key)
	before := h.state[key]
	if !proto.Equal(e.PrevKv, before) {
		return fmt.Errorf("%s: the record before it is at revision %d, it says %d", describe(e), before.GetModRevision(), e.PrevKv.GetModRevision())
	}
	if e.Type == mvccpb.Event_DELETE {
		delete(h.state, key)
		return nil
	}
	create, version := e.Kv.ModRevision, int64(1)
	if before != nil {
		create, version = before.CreateRevision, before.Version+1
	}
	if e.Kv.CreateRevision != create || e.Kv.Version != version {
		return fmt.Errorf("%s: created at %d, version %d; wanted %d and %d", describe(e), e.Kv.CreateRevision, e.Kv.Version, create, version)
	}
	h.state[key] = e.Kv
	return nil
}

// settle forgets the replayed writes, after none that was acknowledged is missing.
func (h *crashHistory) settle() error {
	var lost []error
	for _, a := range h.attempts {
		switch {
		case a.rev == 0:
			h.unknown++
		case a.done:
		case a.lease != 0 && len(h.keysOf(a.lease)) == 0: // had no keys
		default:
			lost = append(lost, fmt.Errorf("acknowledged write %d at revision %d is lost: %+v", a.id, a.rev, a.changes))
		}
	}
	h.attempts = nil
	return errors.Join(lost...)
}

// compareState compares all keys at a revision.
func (h *crashHistory) compareState(ctx context.Context, conn *grpc.ClientConn, rev int64) error {
	kv := etcdserverpb.NewKVClient(conn)
	resp, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: rev})
	if err != nil {
		return fmt.Errorf("list at revision %d: %w", rev, err)
	}
	keys := slices.Sorted(maps.Keys(h.state))
	if len(keys) != len(resp.Kvs) || resp.Count != int64(len(keys)) {
		return fmt.Errorf("list at revision %d: %d keys (count %d) instead of %d", rev, len(resp.Kvs), resp.Count, len(keys))
	}
	for i, key := range keys {
		if !proto.Equal(resp.Kvs[i], h.state[key]) {
			return fmt.Errorf("list at revision %d: %s at revision %d instead of %s at %d", rev, resp.Kvs[i].Key, resp.Kvs[i].ModRevision, key, h.state[key].ModRevision)
		}
	}
	if h.floor > 1 {
		_, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, Revision: h.floor - 1})
		if err == nil {
			return fmt.Errorf("revision %d can be read, though it is compacted", h.floor-1)
		}
	}
	return nil
}

// compareLeases: an acknowledged lease is there with all its time and its keys,
// a revoked one is not, and a revoke without an answer has happened wholly or not at all.
func (h *crashHistory) compareLeases(ctx context.Context, conn *grpc.ClientConn) error {
	client := etcdserverpb.NewLeaseClient(conn)
	for _, l := range h.leases {
		resp, err := client.LeaseTimeToLive(ctx, &etcdserverpb.LeaseTimeToLiveRequest{ID: l.id, Keys: true})
		if err != nil {
			return fmt.Errorf("lease %x: %w", l.id, err)
		}
		gone := resp.TTL < 0
		switch {
		case !l.long():
			if gone && l.revoke == nil && time.Since(l.renewed) < time.Duration(l.ttl)*time.Second {
				return fmt.Errorf("lease %x of %d s has ended too early", l.id, l.ttl)
			}
		case gone && l.revoke == nil:
			return fmt.Errorf("lease %x of %d s is lost", l.id, l.ttl)
		case !gone && l.revoke != nil && l.revoke.rev != 0:
			return fmt.Errorf("lease %x is back, it was revoked", l.id)
		case gone && len(h.keysOf(l.id)) > 0:
			return fmt.Errorf("lease %x is gone, its keys are not: %q", l.id, h.keysOf(l.id))
		case !gone && (resp.GrantedTTL != l.ttl || resp.TTL > l.ttl):
			return fmt.Errorf("lease %x of %d s: granted %d, left %d", l.id, l.ttl, resp.GrantedTTL, resp.TTL)
		case !gone && !sameKeys(resp.Keys, h.keysOf(l.id)):
			return fmt.Errorf("lease %x: keys %q instead of %q", l.id, resp.Keys, h.keysOf(l.id))
		}
		switch {
		case !gone:
			l.revoke = nil
		case len(h.keysOf(l.id)) == 0: // else the end of its keys is still to be replayed
			delete(h.leases, l.id)
		}
	}
	return nil
}

func sameKeys(got [][]byte, want []string) bool {
	return slices.EqualFunc(got, want, func(g []byte, w string) bool { return string(g) == w })
}
