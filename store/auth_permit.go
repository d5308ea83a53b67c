package store

import (
	"context"

	"github.com/tarn-kv/tarn/store/auth"
)

// While access control is off, each check here is one look at a flag.

// PermitRead returns nil if the context's caller may read a range. A reader asks after it has
// pinned its revision: what a revocation was meant to hide is not in there then, or the
// revocation is seen.
//
// An error of auth.State.Allow is returned when the caller may not.
func (s *Store) PermitRead(ctx context.Context, r KeyRange) error {
	st := s.Auth()
	if !st.Enabled() {
		return nil
	}
	return st.Allow(auth.CallerOf(ctx), auth.ToRead, r.Key, r.End)
}

// PermitKeepAlive returns nil if the context's caller may renew a lease: it may write all
// of its keys.
func (s *Store) PermitKeepAlive(ctx context.Context, id int64) error {
	return s.permitLeases(ctx, s.Auth(), auth.ToWrite, func() []string { return s.leases.keys(id) })
}

// PermitLeaseKeys returns nil if the context's caller may see these keys of a lease.
func (s *Store) PermitLeaseKeys(ctx context.Context, keys []string) error {
	return s.permitLeases(ctx, s.Auth(), auth.ToRead, func() []string { return keys })
}

// PermitLeaseList returns nil if the context's caller may see which leases there are: it may
// read the keys of all of them.
func (s *Store) PermitLeaseList(ctx context.Context) error {
	return s.permitLeases(ctx, s.Auth(), auth.ToRead, s.leases.allKeys)
}

// permitLeases checks access to keys of leases. The keys are not collected for the
// role root, and not while access control is off.
func (s *Store) permitLeases(ctx context.Context, st *auth.State, want auth.Access, keys func() []string) error {
	if !st.Enabled() {
		return nil
	}
	c := auth.CallerOf(ctx)
	if err := st.Known(c); err != nil {
		return err
	}
	if st.Admin(c) == nil {
		return nil
	}
	for _, k := range keys() {
		if err := st.Allow(c, want, []byte(k), nil); err != nil {
			return err
		}
	}
	return nil
}

// permitRevoke checks the end of a lease by a caller, against the head. Store.mu is held.
func (s *Store) permitRevoke(ctx context.Context, id int64) error {
	return s.permitLeases(ctx, s.auth.head, auth.ToWrite, func() []string { return s.leases.keys(id) })
}

// permitTxn checks a transaction with both branches, whatever the compares will say.
func (s *Store) permitTxn(ctx context.Context, st *auth.State, req *TxnRequest) error {
	if !st.Enabled() {
		return nil
	}
	p := permitter{s: s, ctx: ctx, state: st, caller: auth.CallerOf(ctx)}
	return p.txn(req)
}

// permitter checks one transaction.
type permitter struct {
	s      *Store
	ctx    context.Context
	state  *auth.State
	caller auth.Caller
}

func (p *permitter) txn(req *TxnRequest) error {
	for i := range req.Compare {
		if err := p.allow(auth.ToRead, req.Compare[i].KeyRange); err != nil {
			return err
		}
	}
	for _, ops := range [2][]Op{req.Success, req.Failure} {
		for i := range ops {
			if err := p.op(&ops[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *permitter) op(op *Op) error {
	switch {
	case op.Range != nil:
		return p.allow(auth.ToRead, op.Range.KeyRange)
	case op.Put != nil:
		return p.put(op.Put)
	case op.Delete != nil:
		if err := p.allow(auth.ToWrite, op.Delete.KeyRange); err != nil || !op.Delete.PrevKV {
			return err
		}
		return p.allow(auth.ToRead, op.Delete.KeyRange)
	case op.Txn != nil:
		return p.txn(op.Txn)
	}
	return nil
}

// put also asks for all keys of the lease: whoever attaches a key can no longer
// end the lease if it may not write the others.
func (p *permitter) put(put *PutRequest) error {
	key := KeyRange{Key: put.Key}
	if err := p.allow(auth.ToWrite, key); err != nil {
		return err
	}
	if put.Lease != 0 {
		keys := func() []string { return p.s.leases.keys(put.Lease) }
		if err := p.s.permitLeases(p.ctx, p.state, auth.ToWrite, keys); err != nil {
			return err
		}
	}
	if put.PrevKV {
		return p.allow(auth.ToRead, key)
	}
	return nil
}

func (p *permitter) allow(want auth.Access, r KeyRange) error {
	return p.state.Allow(p.caller, want, r.Key, r.End)
}

// keys returns the keys of a lease, none if there is no such lease.
func (l *leases) keys(id int64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.byID[id]; x != nil {
		return x.keysOf()
	}
	return nil
}

// allKeys returns the keys of all leases.
func (l *leases) allKeys() (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.byID {
		for k := range x.keys {
			keys = append(keys, k)
		}
	}
	return keys
}
