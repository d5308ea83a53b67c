package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// crashCase is a life that is repeated with a fault at each operation of the
// file system.
type crashCase struct {
	name            string
	fsType          string
	seed            uint64
	checkpointBytes int64 // small: checkpoints run in the background
	requests        int   // of a random script; 0 for the fixed one
}

func crashCases(t *testing.T) []crashCase {
	seed := uint64(envInt(t, "TARN_CRASH_SEED", 1))
	cases := []crashCase{
		{"fixed", "ext4", 1, 1 << 20, 0},
		{"fixed with background checkpoints", "zfs", 2, 600, 0},
		{"random", "ext4", seed, 1 << 20, 60},
		{"random with background checkpoints", "zfs", seed + 1, 1500, 60},
	}
	if n := envInt(t, "TARN_CRASH_CASES", 0); n > 0 {
		for i := range uint64(n) {
			cases = append(cases, crashCase{fmt.Sprintf("random %d", i), []string{"ext4", "zfs"}[i%2], seed + 2 + i, 400 << (i % 5), 80})
		}
	}
	return cases
}

// begin makes a life, its file system and its script: the same for each call, but for
// what runs in the background.
func (c *crashCase) begin(t *testing.T) (*crashLife, *simfs.FS, Options, []string) {
	root := crashDir(t)
	sim, err := simfs.New(root)
	must(t, err)
	sim.SetType(c.fsType)
	l := newCrashLife(t, c.seed)
	script := crashScript
	if c.requests > 0 {
		script = l.randomScript(c.requests)
	}
	return l, sim, crashOptions(filepath.Join(root, "data"), sim, c.checkpointBytes), script
}

// each runs f for one operation after the other, until f reports that there is no such
// operation. A short run takes one in stride, a long one takes all.
func (c *crashCase) each(t *testing.T, stride int, f func(t *testing.T, n int) (end bool)) {
	switch {
	case testing.Short():
		stride *= 7
	case envInt(t, "TARN_CRASH_CASES", 0) > 0:
		stride = 1
	case raceEnabled: // ten times slower, and what runs beside is the same at each operation
		stride *= 5
	}
	t.Run(c.name, func(t *testing.T) {
		t.Logf("seed %d", c.seed)
		n := 1
		for end := false; !end && !t.Failed() && n < 2000; n += stride { // a filter of subtests never ends it
			t.Run(fmt.Sprint(n), func(t *testing.T) { end = f(t, n) })
		}
		if n < 100 && !t.Failed() {
			t.Errorf("only %d operations", n)
		}
	})
}

// TestPowerCutAtEveryOperation: whatever the disk holds after a power cut is a good
// store with everything that was acknowledged or shown.
func TestPowerCutAtEveryOperation(t *testing.T) {
	for _, c := range crashCases(t) {
		c.each(t, 2, func(t *testing.T, n int) (end bool) {
			l, sim, o, script := c.begin(t)
			sim.CrashAt(n)
			s, err := l.live(o, script)
			if s != nil {
				l.shown = max(l.shown, s.Revision())
				err = errors.Join(err, s.Close())
			}
			if !sim.WasCut() {
				must(t, err)
				return true
			}
			rnd := rand.New(rand.NewPCG(c.seed, uint64(n)))
			for range 2 {
				l := l.twin()
				root := l.afterCut(sim, rnd)
				for l.rnd = rnd; rnd.IntN(3) == 0; {
					root = l.cutAgain(root, c.fsType, rnd)
				}
				l.goOn(crashOptions(filepath.Join(root, "data"), nil, c.checkpointBytes))
			}
			return false
		})
	}
}

// twin is a life that goes another way from here on.
func (l *crashLife) twin() *crashLife {
	c := *l
	c.m = l.m.clone()
	return &c
}

// afterCut makes the directory that a power cut leaves, and checks it.
func (l *crashLife) afterCut(sim *simfs.FS, rnd *rand.Rand) (root string) {
	root = crashDir(l.t)
	must(l.t, sim.Image(root, rnd))
	data := filepath.Join(root, "data")
	if err := l.checkClean(data); err != nil {
		l.t.Fatalf("after the power cut: %v; files:%s", err, files(data))
	}
	return root
}

// cutAgain cuts the power during recovery, or shortly after it.
func (l *crashLife) cutAgain(root, fsType string, rnd *rand.Rand) string {
	sim, err := simfs.New(root)
	must(l.t, err)
	sim.SetType(fsType)
	sim.CrashAt(1 + rnd.IntN(15))
	o := crashOptions(filepath.Join(root, "data"), sim, 600)
	o.ExpectID = l.id
	s, err := Open(o)
	if err == nil {
		l.shown = max(l.shown, s.Revision())
		_ = s.Close()
	} else if !errors.Is(err, simfs.ErrPowerCut) && !errors.Is(err, ErrStopped) {
		l.t.Fatalf("recover: %v", err)
	}
	return l.afterCut(sim, rnd)
}

// goOn opens the store, compares it with what was acknowledged, and uses it further.
func (l *crashLife) goOn(o Options) {
	t := l.t
	t.Helper()
	s, err := l.open(o)
	if err == nil {
		err = l.recovered(s)
	}
	if err != nil {
		t.Fatalf("after the crash: %v; files:%s", err, files(o.Dir))
	}
	must(t, s.Close())
	s, err = l.live(o, []string{"put", "grant", "attach", "txn", "physical", "checkpoint", "revoke", "put"})
	must(t, err)
	must(t, l.recovered(s))
	must(t, s.Close())
	must(t, l.checkClean(o.Dir))
	s, err = l.open(o)
	must(t, err)
	must(t, l.recovered(s))
	must(t, s.Close())
	must(t, os.RemoveAll(o.Dir))
}
