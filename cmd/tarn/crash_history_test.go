package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// crashHistory is what clients have sent and what they were told, and the state
// that follows from it up to a revision.
type crashHistory struct {
	mu       sync.Mutex
	nextID   int64
	attempts []*attempt // not known to have failed, not replayed yet
	leases   map[int64]*crashLease

	// published is the newest revision that anybody was shown.
	published int64
	// floor is the newest compact revision that was acknowledged, floorTried
	// the newest that was asked for.
	floor, floorTried int64

	// The replayed state, only used while no client runs.
	state map[string]*mvccpb.KeyValue
	rev   int64

	// journal, if there is one, is told of each thing before it is true for anybody
	// else: a write before it is sent, an answer before the next request.
	journal func(crashRecord)

	acknowledged, unknown, kept, revisions, compactions, renewals, expiries int
}

// attempt is a write that was sent: all its changes happen in one revision, or none.
type attempt struct {
	id      int64
	changes []crashChange
	lease   int64 // of a revoke: the changes are the deletes of its keys
	rev     int64 // as acknowledged, 0 while the outcome is not known
	done    bool  // seen in the watch
}

// crashChange is what a write makes of one key, if the key is as expected.
type crashChange struct {
	key   string
	mod   int64 // mod_revision that the transaction compares with, 0: no key
	del   bool
	size  int // of the value
	lease int64
}

// crashLease is a lease whose grant was acknowledged.
type crashLease struct {
	id, ttl int64
	renewed time.Time // when the last acknowledged renewal was sent
	revoke  *attempt  // nil if nobody has tried
}

// long tells that the lease does not expire within a run.
func (l *crashLease) long() bool { return l.ttl >= crashLongTTL }

// abandoned tells that nobody renews or revokes the lease: it expires, if the server
// lives long enough.
func (l *crashLease) abandoned() bool { return !l.long() && l.id%2 == 1 }

// crashRecord is one thing that a history was told.
type crashRecord struct {
	what    crashWhat
	attempt *attempt
	lease   *crashLease
	rev     int64
}

type crashWhat string

const (
	crashBegun        crashWhat = "begun"        // attempt
	crashAcknowledged crashWhat = "acknowledged" // attempt
	crashRefused      crashWhat = "refused"      // attempt, rev
	crashGranted      crashWhat = "granted"      // lease
	crashRenewed      crashWhat = "renewed"      // lease
	crashCompacting   crashWhat = "compacting"   // rev
	crashCompacted    crashWhat = "compacted"    // rev
)

func (h *crashHistory) note(r crashRecord) {
	if h.journal != nil {
		h.journal(r)
	}
}

func newCrashHistory() *crashHistory {
	return &crashHistory{leases: make(map[int64]*crashLease), state: make(map[string]*mvccpb.KeyValue), rev: 1, published: 1, floor: -1, floorTried: -1}
}

func (h *crashHistory) summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("acknowledged writes %d, lost 0, without an answer %d (of these kept %d), revisions %d, compactions %d, lease renewals %d, expiries %d",
		h.acknowledged, h.unknown, h.kept, h.revisions, h.compactions, h.renewals, h.expiries)
}

// begin notes a write that is about to be sent.
func (h *crashHistory) begin(lease int64, changes ...crashChange) *attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	a := &attempt{id: h.nextID, lease: lease, changes: changes}
	h.attempts = append(h.attempts, a)
	if l := h.leases[lease]; l != nil {
		l.revoke = a
	}
	h.note(crashRecord{what: crashBegun, attempt: a})
	return a
}

func (h *crashHistory) acknowledge(a *attempt, rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.rev = rev
	h.acknowledged++
	h.published = max(h.published, rev)
	h.note(crashRecord{what: crashAcknowledged, attempt: a})
}

// refuse notes that the server has said that nothing was done.
func (h *crashHistory) refuse(a *attempt, rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.published = max(h.published, rev)
	for i, o := range slices.Backward(h.attempts) { // it is one of the newest
		if o == a {
			h.attempts = slices.Delete(h.attempts, i, i+1)
			break
		}
	}
	if l := h.leases[a.lease]; l != nil {
		l.revoke = nil // it had expired
	}
	h.note(crashRecord{what: crashRefused, attempt: a, rev: rev})
}

// value is what the attempt writes into a key: it names the attempt and fills the size.
func (a *attempt) value(c *crashChange) string {
	head := strconv.FormatInt(a.id, 10) + ":" + c.key + ":"
	return head + strings.Repeat("tarn", max(0, c.size-len(head))/4)
}

// fence writes one key for each watch, so that each has an event at its revision.
func (h *crashHistory) fence(ctx context.Context, conn *grpc.ClientConn) (rev int64, err error) {
	var changes []crashChange
	for _, key := range []string{"/registry/leases/fence", "/registry/pods/fence"} {
		c := crashChange{key: key, size: 50}
		resp, err := etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(key)})
		if err != nil {
			return 0, err
		}
		if h.published > resp.Header.Revision {
			return 0, fmt.Errorf("revision %d was shown before, now it is %d", h.published, resp.Header.Revision)
		}
		if len(resp.Kvs) > 0 {
			c.mod = resp.Kvs[0].ModRevision
		}
		changes = append(changes, c)
	}
	a := h.begin(0, changes...)
	resp, err := etcdserverpb.NewKVClient(conn).Txn(ctx, a.request())
	if err != nil || !resp.Succeeded {
		return 0, fmt.Errorf("write the fence: %v, %w", resp, err)
	}
	h.acknowledge(a, resp.Header.Revision)
	return a.rev, nil
}

// request is the transaction that Kubernetes would send.
func (a *attempt) request() *etcdserverpb.TxnRequest {
	req := &etcdserverpb.TxnRequest{}
	for i := range a.changes {
		c := &a.changes[i]
		key := []byte(c.key)
		req.Compare = append(req.Compare, &etcdserverpb.Compare{Key: key, Target: etcdserverpb.Compare_MOD,
			TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: c.mod}})
		op := &etcdserverpb.RequestOp{}
		if c.del {
			op.Request = &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &etcdserverpb.DeleteRangeRequest{Key: key}}
		} else {
			op.Request = &etcdserverpb.RequestOp_RequestPut{RequestPut: &etcdserverpb.PutRequest{Key: key, Value: []byte(a.value(c)), Lease: c.lease}}
		}
		req.Success = append(req.Success, op)
		req.Failure = append(req.Failure, &etcdserverpb.RequestOp{
			Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &etcdserverpb.RangeRequest{Key: key}}})
	}
	return req
}

// checkVerdict holds the stopped directory against what was promised.
func (h *crashHistory) checkVerdict(v *checkVerdict) error {
	switch {
	case v.Revision < h.published:
		return fmt.Errorf("revision %d was shown, the directory has %d", h.published, v.Revision)
	case v.CompactRevision < h.floor || v.CompactRevision > h.floorTried:
		return fmt.Errorf("compact revision %d, acknowledged is %d, asked for %d", v.CompactRevision, h.floor, h.floorTried)
	}
	return nil
}
