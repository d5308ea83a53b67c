package store

import (
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// TestIOErrorAtEveryOperation: the store stops, has promised nothing that is not there, and the next
// start recovers; what that one shows survives a power cut.
func TestIOErrorAtEveryOperation(t *testing.T) {
	for _, c := range crashCases(t) {
		c.each(t, 4, func(t *testing.T, n int) (end bool) {
			l, sim, o, script := c.begin(t)
			sim.FailAt(n, syscall.EIO)
			s, err := l.live(o, script)
			if s != nil {
				if err != nil && s.Err() != nil {
					<-s.Failed()
				}
				_ = s.Close()
			}
			end = sim.Ops() < n
			if end {
				must(t, err)
			}
			l.restart(sim, o, c.seed+uint64(n))
			return end
		})
	}
}

// restart starts the next process on the same running system, then cuts the power.
func (l *crashLife) restart(sim *simfs.FS, o Options, seed uint64) {
	t := l.t
	t.Helper()
	sim.SetHook(nil)
	must(t, l.checkClean(o.Dir))
	s, err := l.open(o)
	if err == nil {
		err = l.recovered(s)
	}
	if err != nil {
		t.Fatalf("restart: %v; files:%s", err, files(o.Dir))
	}
	sim.Cut()
	_ = s.Close()
	root := l.afterCut(sim, rand.New(rand.NewPCG(seed, 2)))
	l.goOn(crashOptions(filepath.Join(root, "data"), nil, o.CheckpointBytes))
}

// TestNoSpaceAtEveryOperation: with the disk full for one operation, or for some, the
// store refuses writes and goes on; if it can not, the next start recovers.
func TestNoSpaceAtEveryOperation(t *testing.T) {
	for _, c := range crashCases(t) {
		for _, length := range []int{1, 12} {
			c := c
			c.name += map[int]string{1: ", one operation", 12: ", some operations"}[length]
			c.each(t, 6, func(t *testing.T, n int) (end bool) {
				l, sim, o, script := c.begin(t)
				l.mayRefuse = true
				sim.SetHook(fullFor(n, length))
				s, err := l.live(o, script)
				end = sim.Ops() < n
				if s != nil && s.Err() == nil && err == nil {
					sim.SetHook(nil)
					l.roomAgain(s)
				}
				if s != nil {
					_ = s.Close()
				}
				l.restart(sim, o, c.seed+uint64(n))
				return end
			})
		}
	}
}

// fullFor makes the operations that need space fail, from number n on. A single one fails
// whatever it is: a sync too can find that there is no space.
func fullFor(n, length int) func(simfs.Op) error {
	return func(op simfs.Op) error {
		if op.N < n || op.N >= n+length {
			return nil
		}
		switch op.Kind {
		case simfs.Write, simfs.Preallocate, simfs.Create, simfs.Commit, simfs.Mkdir:
			return syscall.ENOSPC
		case simfs.Sync:
			if length == 1 {
				return syscall.ENOSPC
			}
		}
		return nil
	}
}

// roomAgain: once there is room the store takes every request.
func (l *crashLife) roomAgain(s *Store) {
	l.t.Helper()
	must(l.t, l.do(s, "checkpoint"))
	refusals := l.refusals
	for _, kind := range []string{"put", "grant", "attach", "physical", "checkpoint", "revoke"} {
		must(l.t, l.do(s, kind))
	}
	if l.refusals > refusals {
		l.t.Errorf("%d requests refused though there is room", l.refusals-refusals)
	}
	must(l.t, l.recovered(s))
}
