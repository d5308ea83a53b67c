package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// groupWrite is a write of one of many clients: keys of its own, each once.
type groupWrite struct {
	ops   []Op
	rev   int64 // 0 while there is no answer
	lease int64 // of a revoke; its keys are in ops, as deletes
}

// groupClient writes until the power is cut.
type groupClient struct {
	prefix string
	rnd    *rand.Rand
	live   []string // its keys
	leased []string // those of its lease
	lease  int64    // acknowledged, 0 if none
	grants int64
	writes []*groupWrite
}

// step sends one write.
func (c *groupClient) step(s *Store, number int64) error {
	w := &groupWrite{}
	switch n := c.rnd.IntN(10); {
	case c.lease == 0 && n < 3:
		c.grants++
		id := number*1000 + c.grants
		if _, err := s.LeaseGrant(bg, id, 5000); err != nil {
			return err
		}
		c.lease = id
		return nil
	case c.lease != 0 && n == 0 && len(c.leased) > 0:
		w.lease = c.lease
		slices.Sort(c.leased)
		for _, k := range c.leased {
			w.ops = append(w.ops, deleteOp(single(k)))
		}
		c.leased, c.lease = nil, 0
	case c.lease != 0 && n < 4:
		key := fmt.Sprintf("%s/lease/%d", c.prefix, len(c.writes))
		op := putOp(key, "x")
		op.Put.Lease = c.lease
		c.leased = append(c.leased, key)
		w.ops = []Op{op}
	case n < 6 && len(c.live) > 0:
		w.ops = []Op{deleteOp(single(c.live[0])), putOp(c.prefix+"/count", fmt.Sprint(len(c.writes)))}
		c.live = c.live[1:]
	default:
		for i := range 1 + c.rnd.IntN(3) {
			key := fmt.Sprintf("%s/%d/%d", c.prefix, len(c.writes), i)
			c.live = append(c.live, key)
			w.ops = append(w.ops, putOp(key, "value of "+key))
		}
	}
	c.writes = append(c.writes, w)
	var err error
	if w.lease != 0 {
		w.rev, err = s.LeaseRevoke(bg, w.lease)
	} else {
		w.rev, err = do(s, w.ops...)
	}
	if err != nil {
		w.rev = 0
	}
	return err
}

// matches tells whether the changes of one revision are those of the write.
func (w *groupWrite) matches(changes []*Event) bool {
	return slices.EqualFunc(w.ops, changes, func(op Op, e *Event) bool {
		if op.Delete != nil {
			return e.delete && e.key == string(op.Delete.Key)
		}
		return !e.delete && e.key == string(op.Put.Key)
	})
}

// TestPowerCutUnderGroupCommit: many writers share a frame of the log. Each of their writes is
// there wholly or not at all, and all that were acknowledged are.
func TestPowerCutUnderGroupCommit(t *testing.T) {
	seed := uint64(envInt(t, "TARN_CRASH_SEED", 1))
	t.Logf("seed %d", seed)
	stride := 3
	if testing.Short() {
		stride = 20
	}
	for n := 10; n < 250; n += stride {
		root := crashDir(t)
		sim, err := simfs.New(root)
		must(t, err)
		sim.CrashAt(n)
		s, err := Open(crashOptions(filepath.Join(root, "data"), sim, 2000))
		if err != nil {
			continue // the cut came before there was a store
		}
		clients := runGroup(s, seed+uint64(n))
		shown := s.Revision()
		_ = s.Close()
		for i := range uint64(2) {
			l := newCrashLife(t, seed)
			l.id, l.shown, l.term = s.ID(), shown, s.Term()
			image := l.afterCut(sim, rand.New(rand.NewPCG(seed+i, uint64(n))))
			if err := l.groupRecovered(filepath.Join(image, "data"), clients); err != nil {
				t.Fatalf("operation %d, image %d: %v", n, i, err)
			}
		}
	}
}

func runGroup(s *Store, seed uint64) []*groupClient {
	var clients []*groupClient
	var wg sync.WaitGroup
	for i := range int64(6) {
		c := &groupClient{prefix: fmt.Sprintf("c%d", i), rnd: rand.New(rand.NewPCG(seed, uint64(i)))}
		clients = append(clients, c)
		wg.Go(func() {
			for c.step(s, i+1) == nil {
			}
		})
	}
	wg.Wait()
	return clients
}

// groupRecovered opens what the cut has left and explains each revision by one write.
func (l *crashLife) groupRecovered(dir string, clients []*groupClient) error {
	s, err := l.open(crashOptions(dir, nil, 2000))
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Revision() < l.shown {
		return fmt.Errorf("revision %d was shown, now it is %d", l.shown, s.Revision())
	}
	answered, open := map[int64]*groupWrite{}, map[*groupWrite]bool{}
	for _, c := range clients {
		for _, w := range c.writes {
			if w.rev != 0 {
				answered[w.rev] = w
			} else {
				open[w] = true
			}
		}
	}
	rev := int64(1)
	for events := l.seen; len(events) > 0; {
		n := countRevision(events, events[0].main)
		if rev++; events[0].main != rev {
			return fmt.Errorf("revision %d after revision %d", events[0].main, rev-1)
		}
		if w := answered[rev]; w != nil {
			if !w.matches(events[:n]) {
				return fmt.Errorf("revision %d is not what was acknowledged", rev)
			}
			delete(answered, rev)
		} else if !takeOpen(open, events[:n]) {
			return fmt.Errorf("nobody has written revision %d, or not all of it is there", rev)
		}
		events = events[n:]
	}
	if len(answered) > 0 {
		return fmt.Errorf("%d acknowledged writes are lost", len(answered))
	}
	return l.groupLeases(s, clients)
}

func takeOpen(open map[*groupWrite]bool, events []*Event) bool {
	for w := range open {
		if w.matches(events) {
			delete(open, w)
			return true
		}
	}
	return false
}

// groupLeases: a lease is there with its keys, unless its end was asked for.
func (l *crashLife) groupLeases(s *Store, clients []*groupClient) error {
	var errs []error
	for _, c := range clients {
		if c.lease == 0 {
			continue
		}
		info, ok := s.LeaseTimeToLive(c.lease, true)
		missing := len(c.leased) - len(info.Keys) // the last one may have no answer
		if !ok || missing < 0 || missing > 1 {
			errs = append(errs, fmt.Errorf("lease %d: there %v, keys %q, attached %q", c.lease, ok, info.Keys, c.leased))
		}
	}
	return errors.Join(errs...)
}
