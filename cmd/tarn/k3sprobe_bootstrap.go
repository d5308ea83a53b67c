package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

const (
	// scratchTTL ends the probe's key, in seconds, if the probe is killed in between.
	scratchTTL = 60
	// bundleSize is about what k3s stores of its certificates.
	bundleSize = 16 << 10
)

// askBootstrap does with a key of its own what k3s does first with /bootstrap: take an empty key as a
// lock, replace it by the encrypted certificates, and delete it. Without write it only looks at k3s' own.
func (p *datastoreProbe) askBootstrap(ctx context.Context, f *findings, _ probeContact) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	if !p.write {
		p.lookAtBootstrap(ctx, f)
		return
	}
	key := scratchKey()
	if err := p.bootstrap(ctx, key); err != nil {
		f.problem("bootstrap", "k3s can not start with it: look at the server's log", "what k3s does at its first start failed: %v", p.explain(err))
	} else {
		f.ok("bootstrap", "k3s can lock, store and replace its certificates, empty values are kept, and leases work (tried with a key of its own, which is gone again)")
	}
}

// lookAtBootstrap reports k3s' own keys.
func (p *datastoreProbe) lookAtBootstrap(ctx context.Context, f *findings) {
	r, err := etcdserverpb.NewKVClient(p.c).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(bootstrapPrefix), RangeEnd: prefixEnd([]byte(bootstrapPrefix))})
	if err != nil {
		f.problem("bootstrap", "look at the server's log", "the keys below %s can not be read: %v", bootstrapPrefix, p.explain(err))
		return
	}
	judgeBootstrap(f, r.Kvs)
}

// judgeBootstrap says what k3s will make of the keys below /bootstrap.
func judgeBootstrap(f *findings, kvs []*mvccpb.KeyValue) {
	var names []string
	empty := false
	for _, kv := range kvs {
		names = append(names, string(kv.Key))
		empty = empty || len(kv.Value) == 0
	}
	switch {
	case len(kvs) == 0:
		f.note("bootstrap", "no k3s has stored its certificates here yet. What it writes at its first start is not tried, since nothing is written here; tarn k3s setup tries it")
	case len(kvs) > 1:
		f.problem("bootstrap", "k3s starts with one token only: keep the one of the cluster that is to go on, and delete the others with etcdctl del",
			"there are certificates of %d k3s, encrypted with different tokens: %s", len(kvs), strings.Join(names, ", "))
	case empty:
		f.warning("bootstrap", "if no k3s server is starting now, the next one takes the lock over after a few seconds", "%s is empty: a k3s server is in its first start, or was stopped in it", names[0])
	default:
		f.ok("bootstrap", "k3s has stored its certificates (%s)", names[0])
	}
}

// bootstrap returns what is not as k3s needs it. The key is gone after it.
func (p *datastoreProbe) bootstrap(ctx context.Context, key string) (err error) {
	kv, leases := etcdserverpb.NewKVClient(p.c), etcdserverpb.NewLeaseClient(p.c)
	lease, err := leases.LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{TTL: scratchTTL})
	if err != nil {
		return fmt.Errorf("grant a lease: %w", err)
	}
	s := scratch{kv: kv, key: []byte(key), lease: lease.ID}
	defer func() {
		// The key goes with its lease, also after a failure and an interruption.
		cleaning, cancel := p.limited(context.WithoutCancel(ctx))
		defer cancel()
		if _, revokeErr := leases.LeaseRevoke(cleaning, &etcdserverpb.LeaseRevokeRequest{ID: lease.ID}); revokeErr != nil && !s.removed {
			err = errors.Join(err, fmt.Errorf("revoke the lease %x (the key %s is gone in %d s): %w", lease.ID, key, scratchTTL, revokeErr))
		}
	}()
	for _, step := range []func(context.Context) error{s.lock, s.lockAgain, s.readLock, s.store, s.storeStale, s.remove} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// scratch is the probe's key and how far it is.
type scratch struct {
	kv       etcdserverpb.KVClient
	key      []byte
	lease    int64
	revision int64 // of its last change
	value    []byte
	removed  bool
}

// txn does then if the key has the revision want, and else reads it, as k3s' client does.
func (s *scratch) txn(ctx context.Context, want int64, then *etcdserverpb.RequestOp, read bool) (*etcdserverpb.TxnResponse, error) {
	req := &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{{Result: etcdserverpb.Compare_EQUAL, Target: etcdserverpb.Compare_MOD, Key: s.key,
			TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: want}}},
		Success: []*etcdserverpb.RequestOp{then},
	}
	if read {
		req.Failure = []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &etcdserverpb.RangeRequest{Key: s.key}}}}
	}
	return s.kv.Txn(ctx, req)
}

func (s *scratch) put(value []byte) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: &etcdserverpb.PutRequest{Key: s.key, Value: value, Lease: s.lease}}}
}

func (s *scratch) lock(ctx context.Context) error {
	r, err := s.txn(ctx, 0, s.put(nil), false)
	switch {
	case err != nil:
		return fmt.Errorf("create a key with an empty value: %w", err)
	case !r.Succeeded:
		return errors.New("a new key can not be created: the comparison with revision 0 fails")
	}
	s.revision = r.GetHeader().GetRevision()
	return nil
}

func (s *scratch) lockAgain(ctx context.Context) error {
	r, err := s.txn(ctx, 0, s.put(nil), false)
	switch {
	case err != nil:
		return fmt.Errorf("create a key that is there: %w", err)
	case r.Succeeded:
		return errors.New("a key can be created twice, so two k3s would both have the lock")
	}
	return nil
}

func (s *scratch) readLock(ctx context.Context) error {
	r, err := s.kv.Range(ctx, &etcdserverpb.RangeRequest{Key: s.key, RangeEnd: prefixEnd(s.key)})
	switch {
	case err != nil:
		return fmt.Errorf("list a key with an empty value: %w", err)
	case len(r.Kvs) != 1 || len(r.Kvs[0].Value) != 0 || r.Kvs[0].ModRevision != s.revision:
		return fmt.Errorf("a key with an empty value is not listed as it was written: %d key(s)", len(r.Kvs))
	}
	return nil
}

func (s *scratch) store(ctx context.Context) error {
	s.value = bytes.Repeat([]byte("certificates "), bundleSize/13)
	r, err := s.txn(ctx, s.revision, s.put(s.value), true)
	switch {
	case err != nil:
		return fmt.Errorf("replace the value: %w", err)
	case !r.Succeeded:
		return errors.New("a value can not be replaced: the comparison with its own revision fails")
	}
	s.revision = r.GetHeader().GetRevision()
	return nil
}

// storeStale must be refused, and be told what is there.
func (s *scratch) storeStale(ctx context.Context) error {
	r, err := s.txn(ctx, s.revision-1, s.put(nil), true)
	if err != nil {
		return fmt.Errorf("replace a value that has changed: %w", err)
	}
	if r.Succeeded || len(r.Responses) != 1 {
		return errors.New("a value that has changed meanwhile can be replaced")
	}
	if kvs := r.Responses[0].GetResponseRange().GetKvs(); len(kvs) != 1 || !bytes.Equal(kvs[0].Value, s.value) {
		return errors.New("a transaction that fails does not tell the present value")
	}
	return nil
}

func (s *scratch) remove(ctx context.Context) error {
	r, err := s.txn(ctx, s.revision, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &etcdserverpb.DeleteRangeRequest{Key: s.key}}}, true)
	switch {
	case err != nil:
		return fmt.Errorf("delete the key: %w", err)
	case !r.Succeeded:
		return errors.New("a key can not be deleted: the comparison with its own revision fails")
	}
	left, err := s.kv.Range(ctx, &etcdserverpb.RangeRequest{Key: s.key})
	switch {
	case err != nil:
		return fmt.Errorf("read a deleted key: %w", err)
	case len(left.Kvs) > 0:
		return errors.New("a deleted key is still there")
	}
	s.removed = true
	return nil
}
