package store

import (
	"fmt"
	"strings"
)

// crashScript is a fixed life in which every kind of request meets every other.
var crashScript = strings.Fields(`
	put put txn auth grant attach put checkpoint
	auth put auth delete compact put txn attach physical
	grant attach revoke put defragment put
	reopen put big delete physical compact checkpoint
	txn attach auth revoke compact physical defragment
	put auth reopen put big txn delete grant attach
	checkpoint put auth physical auth revoke put`)

// randomScript is a life of n requests.
func (l *crashLife) randomScript(n int) []string {
	kinds := strings.Fields(`put put put put txn txn txn delete delete big
		grant attach attach revoke auth auth compact physical checkpoint defragment reopen`)
	script := make([]string, n)
	for i := range script {
		script[i] = kinds[l.rnd.IntN(len(kinds))]
	}
	return script
}

// crashRequest is a request and what it does to the model; apply is nil if that is nothing.
type crashRequest struct {
	run   func(*Store) (rev int64, err error)
	apply func(*model)
}

// request makes a request that will succeed.
func (l *crashLife) request(kind string) crashRequest {
	id := l.lease()
	switch kind {
	case "put":
		return l.txn(l.putOp(0, 100))
	case "big":
		return l.txn(l.putOp(0, 3000))
	case "delete":
		return l.txn(deleteOp(single(l.key())), l.putOp(0, 50))
	case "txn":
		ops := []Op{l.putOp(0, 300), deleteOp(between("a1", "a3")), l.putOp(id, 10), l.putOp(0, 10)}
		l.rnd.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		return l.txn(ops[:2+l.rnd.IntN(3)]...)
	case "attach":
		return l.txn(l.putOp(id, 60))
	case "grant":
		return l.grant()
	case "revoke":
		if id == 0 {
			return l.grant()
		}
		return crashRequest{
			run:   func(s *Store) (int64, error) { return s.LeaseRevoke(bg, id) },
			apply: func(m *model) { must(l.t, m.revoke(id)) },
		}
	case "auth":
		return l.changeAuth()
	case "compact", "physical":
		return l.compaction(kind == "physical")
	case "checkpoint":
		return crashRequest{run: func(s *Store) (int64, error) { return 0, s.Checkpoint(bg) }}
	case "defragment":
		return crashRequest{run: func(s *Store) (int64, error) { return 0, s.Defragment(bg) }}
	}
	panic("no such request: " + kind)
}

func (l *crashLife) txn(ops ...Op) crashRequest {
	return crashRequest{
		run: func(s *Store) (int64, error) { return do(s, ops...) },
		apply: func(m *model) {
			_, err := m.txn(&TxnRequest{Success: ops})
			must(l.t, err)
		},
	}
}

func (l *crashLife) grant() crashRequest {
	id, ttl := int64(1000+l.ops), int64(5000+l.ops)
	return crashRequest{
		run: func(s *Store) (int64, error) {
			lease, err := s.LeaseGrant(bg, id, ttl)
			return lease.Revision, err
		},
		apply: func(m *model) { m.leases[id] = ttl },
	}
}

// changeAuth makes the next change of a list that begins again, past those that can not be
// made now.
func (l *crashLife) changeAuth() crashRequest {
	var plan authPlan
	for done := false; !done; l.auths++ {
		plan = authPlans[l.auths%len(authPlans)]
		u, err := plan(l.m.auth)
		done = err == nil && u != nil
	}
	return crashRequest{
		run: func(s *Store) (int64, error) {
			err := s.ChangeAuth(bg, plan)
			return s.Revision(), err
		},
		apply: func(m *model) {
			u, err := plan(m.auth)
			must(l.t, err)
			m.auth, err = m.auth.Apply(u)
			must(l.t, err)
		},
	}
}

// compaction compacts at the newest revision, or at one shortly before.
func (l *crashLife) compaction(physical bool) crashRequest {
	rev := l.m.rev - int64(l.rnd.IntN(3))
	if rev <= max(1, l.m.compacted) {
		return l.txn(l.putOp(0, 20))
	}
	return crashRequest{
		run:   func(s *Store) (int64, error) { return s.Compact(bg, rev, physical) },
		apply: func(m *model) { must(l.t, m.compact(rev)) },
	}
}

func (l *crashLife) key() string { return fmt.Sprintf("a%d", l.rnd.IntN(8)) }

// putOp writes a value that nobody else writes.
func (l *crashLife) putOp(lease int64, size int) Op {
	value := fmt.Sprintf("%d-%d-", l.ops, l.rnd.IntN(1<<20)) + strings.Repeat("x", l.rnd.IntN(size))
	op := putOp(l.key(), value)
	op.Put.Lease = lease
	return op
}

// lease is one of the acknowledged leases, 0 if there is none.
func (l *crashLife) lease() (id int64) {
	n := l.rnd.IntN(1000)
	for x := range l.m.leases {
		if id == 0 || (x*7919+int64(n))%1000 < (id*7919+int64(n))%1000 {
			id = x
		}
	}
	return id
}
