package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestConcurrent lets writers, readers, watchers, compactions, checkpoints and defragmentations
// run at once. Every transaction keeps two rules that every reader checks: "x" and "y" were
// written together, and "count" says how many keys "n/…" there are.
func TestConcurrent(t *testing.T) {
	const writers, writes = 6, 80
	seed := rand.Uint64()
	t.Log("seed", seed)
	c := &concurrent{t: t, s: openStore(t, Options{Dir: t.TempDir(), CheckpointBytes: 4000})}
	_, err := do(c.s, putOp("x", "0"), putOp("y", "0"), putOp("count", "0"))
	must(t, err)
	c.ctx, c.stop = context.WithCancel(bg)
	c.tick = make(chan struct{})
	var others, writing sync.WaitGroup
	for i := range 2 {
		others.Go(func() { c.reader(rand.New(rand.NewPCG(seed, uint64(i)))) })
		others.Go(func() { c.watcher(i == 0) })
	}
	others.Go(func() { c.compactions(rand.New(rand.NewPCG(seed, 100))) })
	others.Go(c.maintenance)
	for i := range writers {
		writing.Go(func() { c.writer(i, writes, rand.New(rand.NewPCG(seed, uint64(10+i)))) })
	}
	writing.Wait()
	c.end.Store(c.s.Revision())
	c.stop()
	others.Wait()
	must(t, c.s.Err())
	if n := c.s.pins.count(); n != 0 {
		t.Errorf("%d revisions are still pinned", n)
	}
	last := c.s.Revision()
	s := reopen(t, c.s)
	if s.Revision() != last {
		t.Errorf("revision %d after a restart, want %d", s.Revision(), last)
	}
	c.s = s
	c.look(0)
}

// writer writes a key of its own and reads it back, and takes part in the common ones.
func (c *concurrent) writer(id, writes int, r *rand.Rand) {
	own, last := fmt.Sprint("own/", id), int64(0)
	for i := range writes {
		select {
		case c.tick <- struct{}{}:
		default:
		}
		rev, err := do(c.s, putOp(own, fmt.Sprint(i)))
		if err != nil {
			c.t.Errorf("put: %v", err)
			return
		}
		res, kvs, err := read(c.s, &RangeRequest{KeyRange: single(own)})
		switch {
		case err != nil:
			c.t.Errorf("read own write: %v", err)
		case rev <= last || res.Revision < rev:
			c.t.Errorf("revision %d after %d, a later read has %d", rev, last, res.Revision)
		case len(kvs) != 1 || string(kvs[0].Value) != fmt.Sprint(i) || kvs[0].ModRevision != rev || kvs[0].Version != int64(i+1):
			c.t.Errorf("wrote %d at %d, read %v", i, rev, kvs)
		}
		last = res.Revision
		rev, err = do(c.s, putOp("x", fmt.Sprint(id, i)), putOp("y", fmt.Sprint(id, i)))
		if err != nil || rev <= last {
			c.t.Errorf("revision %d after %d, %v", rev, last, err)
		}
		last = max(rev, c.count(fmt.Sprint("n/", r.IntN(20))))
	}
}

// count adds a key n/… or removes it, if nobody else has changed the number meanwhile.
func (c *concurrent) count(key string) int64 {
	res, kvs, err := read(c.s, &RangeRequest{KeyRange: single("count")})
	if err != nil {
		c.t.Errorf("read: %v", err)
		return 0
	}
	n, _ := strconv.Atoi(string(kvs[0].Value))
	unchanged := Compare{KeyRange: single("count"), Target: CompareMod, Int: kvs[0].ModRevision}
	exists := Compare{KeyRange: single(key), Target: CompareCreate, Result: Greater}
	nested := &TxnRequest{
		Compare: []Compare{exists},
		Success: []Op{deleteOp(single(key)), putOp("count", fmt.Sprint(n-1))},
		Failure: []Op{putOp(key, "here"), putOp("count", fmt.Sprint(n+1))},
	}
	txn, err := c.s.Txn(bg, &TxnRequest{Compare: []Compare{unchanged}, Success: []Op{{Txn: nested}}, Failure: []Op{rangeOp(single("count"))}})
	if err != nil {
		c.t.Errorf("txn: %v", err)
		return 0
	}
	defer txn.Close()
	if txn.Revision < res.Revision {
		c.t.Errorf("transaction has revision %d, an earlier read %d", txn.Revision, res.Revision)
	}
	return txn.Revision
}

// concurrent is what the goroutines of TestConcurrent share.
type concurrent struct {
	t    *testing.T
	s    *Store
	ctx  context.Context
	stop func()
	end  atomicRevision // set when the writers are done
	tick chan struct{}  // from the writers to those who disturb them
}

// reader looks at current and at older revisions.
func (c *concurrent) reader(r *rand.Rand) {
	last := int64(0)
	for c.next() {
		rev := int64(0)
		if r.IntN(2) == 0 {
			rev = max(2, last-r.Int64N(20))
		}
		if now := c.look(rev); now < last && now > 0 {
			c.t.Errorf("revision %d after %d", now, last)
		} else {
			last = max(last, now)
		}
	}
}

// look checks the rules at a revision and returns the store's.
func (c *concurrent) look(rev int64) int64 {
	rd, err := c.s.NewReader(bg, rev)
	if errorsIs(err, ErrCompacted) {
		return 0
	}
	if err != nil {
		c.t.Errorf("reader: %v", err)
		return 0
	}
	defer rd.Close()
	sc, state := rd.Scan(everything), map[string]*mvccpb.KeyValue{}
	var items []Item
	for {
		items = sc.Next(items[:0], 5, 1<<20)
		if len(items) == 0 {
			break
		}
		kvs, err := valuesOf(c.s, items)
		if err != nil {
			c.t.Errorf("values at %d: %v", rd.At(), err)
			return 0
		}
		for _, kv := range kvs {
			state[string(kv.Key)] = kv
		}
	}
	c.rules(state, rd.At())
	if n := rd.Count(everything); n != int64(len(state)) {
		c.t.Errorf("count at %d is %d, there are %d keys", rd.At(), n, len(state))
	}
	return rd.Current()
}

// rules checks a whole state.
func (c *concurrent) rules(state map[string]*mvccpb.KeyValue, rev int64) {
	n := 0
	for k, kv := range state {
		if len(k) > 2 && k[:2] == "n/" {
			n++
		}
		if kv.ModRevision > rev {
			c.t.Errorf("a read at %d has a change of %d", rev, kv.ModRevision)
		}
	}
	x, y, count := state["x"], state["y"], state["count"]
	if x == nil || y == nil || count == nil {
		c.t.Errorf("keys are missing at %d", rev)
		return
	}
	if string(x.Value) != string(y.Value) || x.ModRevision != y.ModRevision || string(count.Value) != fmt.Sprint(n) {
		c.t.Errorf("at %d: x %v, y %v, %d keys, count %s", rev, x, y, n, count.Value)
	}
}

func (c *concurrent) compactions(r *rand.Rand) {
	for c.next() {
		rev := max(c.s.Status().CompactRevision+1, c.s.Revision()-r.Int64N(30))
		_, err := c.s.Compact(bg, rev, r.IntN(2) == 0)
		if err != nil && !errorsIs(err, ErrFutureRev) {
			c.t.Errorf("compact: %v", err)
		}
		if _, err := c.s.HashKV(bg, 0); err != nil {
			c.t.Errorf("hash: %v", err)
		}
	}
}

// next waits for a writer's step; false at the end.
func (c *concurrent) next() bool {
	select {
	case <-c.tick:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func (c *concurrent) maintenance() {
	for i := 0; c.next(); i++ {
		var err error
		if i%4 == 0 {
			err = c.s.Defragment(bg)
		} else {
			err = c.s.Checkpoint(bg)
		}
		if err != nil {
			c.t.Errorf("maintenance: %v", err)
		}
	}
}
