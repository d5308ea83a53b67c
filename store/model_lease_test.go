package store

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// Leases of the model last for hours, so none ends by itself.
func modelTTL(id int64) int64 { return 10_000 * id }

func (r *modelRunner) stepLease() {
	id := 1 + r.rnd.Int64N(4)
	granted, known := r.m.leases[id]
	switch r.rnd.IntN(6) {
	case 0, 1:
		r.grant(id, known)
	case 2:
		r.logf("revoke %d", id)
		rev, err := r.s.LeaseRevoke(bg, id)
		if r.sameErr("revoke", err, r.m.revoke(id)) {
			r.equal("revoke's revision", rev, r.m.rev)
		}
	case 3:
		r.logf("keep %d alive", id)
		ttl, err := r.s.LeaseKeepAlive(bg, id)
		r.noErr("keepalive", err)
		r.equal("keepalive's TTL", ttl, granted)
	case 4:
		r.checkLease(id)
	default:
		r.checkLeases()
	}
}

func (r *modelRunner) grant(id int64, known bool) {
	r.logf("grant %d", id)
	l, err := r.s.LeaseGrant(bg, id, modelTTL(id))
	var want error
	switch {
	case r.m.alarm(Corrupt):
		want = ErrCorrupt
	case r.m.alarm(NoSpace):
		want = ErrNoSpace
	case known:
		want = ErrLeaseExists
	}
	if r.sameErr("grant", err, want) {
		r.equal("lease", l, Lease{ID: id, TTL: modelTTL(id), Revision: r.m.rev})
		r.m.leases[id] = modelTTL(id)
	}
}

func (r *modelRunner) checkLease(id int64) {
	l, ok := r.s.LeaseTimeToLive(id, true)
	granted, known := r.m.leases[id]
	r.equal("lease known", ok, known)
	r.equal("lease's granted TTL", l.Granted, granted)
	if known && (l.TTL > granted+1 || l.TTL < granted-1000) {
		r.failf("lease %d has %d s left of %d", id, l.TTL, granted)
	}
	if known && !slices.Equal(l.Keys, r.m.leaseKeys(id)) {
		r.failf("lease %d has keys %q, want %q", id, l.Keys, r.m.leaseKeys(id))
	}
}

func (r *modelRunner) checkLeases() {
	ids := r.s.Leases()
	r.equal("number of leases", len(ids), len(r.m.leases))
	r.equal("leases by time left", slices.IsSorted(ids), true)
	for id := range r.m.leases {
		r.equal("lease is listed", slices.Contains(ids, id), true)
	}
}

func (r *modelRunner) stepCheckpoint() {
	r.logf("checkpoint")
	r.noErr("checkpoint", r.s.Checkpoint(bg))
}

func (r *modelRunner) stepDefragment() {
	r.logf("defragment")
	r.noErr("defragment", r.s.Defragment(bg))
}

// stepSnapshot opens a snapshot as a store and compares the hash.
func (r *modelRunner) stepSnapshot() {
	r.logf("snapshot")
	sn, err := r.s.Snapshot(bg)
	r.noErr("snapshot", err)
	defer sn.Close()
	var b bytes.Buffer
	n, err := sn.WriteTo(&b)
	r.noErr("write snapshot", err)
	r.equal("snapshot's size", n, sn.Size())
	r.equal("snapshot's length", int64(b.Len()), n)
	dir := r.t.TempDir()
	r.noErr("write file", os.WriteFile(filepath.Join(dir, treeName), b.Bytes(), 0o600))
	s, err := Open(Options{Dir: dir, AllowMissingLog: true})
	r.noErr("open snapshot", err)
	defer s.Close()
	live := &modelRunner{s: s, m: r.m, rnd: r.rnd, t: r.t, readers: r.readers, log: r.log}
	hashes := r.m.hashes
	r.m.hashes = nil
	live.checkHash(0)
	r.m.hashes = hashes
	live.checkLeases()
	live.checkAlarms()
}

// stepReopen closes the store, checks its files, opens it again, and compares all that can be read.
func (r *modelRunner) stepReopen() {
	r.logf("reopen")
	r.closeAll()
	if r.chance(2) {
		_, err := r.s.LeaseKeepAlive(bg, 1)
		r.noErr("keepalive", err)
	}
	r.noErr("close", r.s.Close())
	rep, err := Check(bg, r.s.opts.Dir)
	r.noErr("check", err)
	if len(rep.Findings) > 0 {
		r.failf("check found %q", rep.Findings)
	}
	r.m.restart()
	r.equal("check's revision", rep.Revision, r.m.rev)
	r.equal("check's compact revision", rep.CompactRevision, r.m.compacted)
	r.equal("check's keys", rep.Keys, int64(len(r.m.at(r.m.rev, everything))))
	r.equal("check's hash", rep.Hash, r.m.hash(r.m.rev))
	s, err := Open(r.s.opts)
	r.noErr("open", err)
	r.equal("ID", s.ID(), r.s.ID())
	r.s, r.term = s, r.term+1
	for rev := max(1, r.m.compacted); rev <= r.m.rev; rev++ {
		q := &RangeRequest{KeyRange: everything, Revision: rev}
		res, err := s.Range(bg, q)
		r.noErr("range", err)
		want := r.m.find(q, rev)
		r.equal("count", res.Count, want.count)
		r.sameItems(res.Items, want, q)
		res.Close()
		if r.chance(4) {
			r.checkHash(rev)
		}
	}
	r.checkHash(0)
	r.checkAlarms()
	for id := range int64(5) {
		r.checkLease(id)
	}
	r.checkLeases()
}

// closeAll closes what is open on the store.
func (r *modelRunner) closeAll() {
	for _, rd := range r.readers {
		rd.Close()
	}
	r.readers = nil
	r.s.compact.wait() // one that a reader held up: the next start would make its hash again
	for i, st := range r.streams {
		if st != nil {
			st.w.Close()
			r.streams[i] = nil
		}
	}
}
