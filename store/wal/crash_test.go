package wal

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// TestPowerCutAtEveryOperation runs a log with rotation, trimming and a
// restart, cuts the power at each operation, and opens what the disk may then
// hold: every acknowledged frame is there, and no other than the one in flight.
func TestPowerCutAtEveryOperation(t *testing.T) {
	const seeds = 6
	eachType(t, func(t *testing.T, fsType string) {
		for n := 1; ; n++ {
			o, sim := simOptions(t, fsType)
			sim.CrashAt(n)
			run := &crashRun{o: o}
			err := run.live()
			if !sim.WasCut() {
				must(t, err)
				if n < 100 {
					t.Fatalf("only %d operations", n)
				}
				return
			}
			if !errors.Is(err, simfs.ErrPowerCut) {
				t.Fatalf("operation %d: got %v", n, err)
			}
			for seed := range uint64(seeds) {
				root := t.TempDir()
				must(t, sim.Image(root, rand.New(rand.NewPCG(uint64(n), seed))))
				run.verify(t, n, seed, root, fsType)
			}
		}
	})
}

// crashRun is the life of a log up to a power cut.
type crashRun struct {
	o     Options
	good  uint64 // newest frame acknowledged
	saved uint64 // frames that a tree would hold
}

func (c *crashRun) live() error {
	for _, last := range []uint64{25, 45} {
		c.o.AfterSeq = c.saved
		l, err := Open(c.o, func(uint64, []byte) error { return nil })
		if err != nil {
			return err
		}
		for c.good < last {
			var more uint64
			more, err = appendUntil(l, c.good+5)
			c.good = max(c.good, more)
			if err != nil {
				l.Close()
				return err
			}
			c.saved = c.good - 3
			if err := l.TrimBefore(c.saved); err != nil {
				l.Close()
				return err
			}
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// verify opens the image, on a file system that is then cut once more while it
// recovers, and then for good.
func (c *crashRun) verify(t *testing.T, n int, seed uint64, root, fsType string) {
	t.Helper()
	o := c.o
	o.AfterSeq = c.saved
	o.Dir = filepath.Join(root, "wal")
	sim := simOver(t, root)
	sim.SetType(fsType)
	sim.CrashAt(1 + int(seed))
	o.FS = sim
	l, err := Open(o, func(uint64, []byte) error { return nil })
	if err == nil {
		l.Close()
	} else if !errors.Is(err, simfs.ErrPowerCut) {
		t.Fatalf("operation %d, seed %d: %v", n, seed, err)
	}
	again := t.TempDir()
	must(t, sim.Image(again, rand.New(rand.NewPCG(uint64(n), seed))))
	o.FS, o.Dir = simOver(t, again), filepath.Join(again, "wal")
	r := &recovered{t: t}
	l, err = Open(o, r.replay)
	if err != nil {
		t.Fatalf("operation %d, seed %d: %v", n, seed, err)
	}
	if last := l.LastSeq(); last < c.good || last > c.good+1 {
		t.Fatalf("operation %d, seed %d: %d frames acknowledged, %d found", n, seed, c.good, last)
	}
	r.want(c.saved+1, l.LastSeq())
	last := l.LastSeq() + 2
	appendTo(t, l, last)
	must(t, l.Close())
	l, r = open(t, o)
	r.want(c.saved+1, last)
	must(t, l.Close())
}

// TestKilledProcess ends a process, not the machine, with frames that are
// written but not synced, or that a sync has failed for. What the next process
// shows, and appends, must survive a power cut.
func TestKilledProcess(t *testing.T) {
	eachType(t, func(t *testing.T, fsType string) {
		for n, done := 1, false; !done; n++ {
			for _, more := range []uint64{0, 2} {
				done = killAt(t, fsType, n, more)
			}
		}
	})
}

// killAt kills the process at operation n; the next one appends more frames.
// done is set if there is no operation n.
func killAt(t *testing.T, fsType string, n int, more uint64) (done bool) {
	o, sim := simOptions(t, fsType)
	sim.SetHook(func(op simfs.Op) error {
		if op.N >= n && op.Kind.Changes() {
			return errors.New("killed")
		}
		return nil
	})
	l, err := Open(o, func(uint64, []byte) error { return nil })
	if err == nil {
		_, err = appendUntil(l, 25)
		l.Close()
	}
	sim.SetHook(nil)
	l, _ = open(t, o)
	shown := l.LastSeq() + more
	appendTo(t, l, shown)
	sim.Cut()
	l.Close()
	for seed := range uint64(3) {
		root := t.TempDir()
		must(t, sim.Image(root, rand.New(rand.NewPCG(uint64(n), seed))))
		o.FS, o.Dir = simOver(t, root), filepath.Join(root, "wal")
		l, r := open(t, o)
		r.want(1, shown)
		must(t, l.Close())
	}
	return err == nil
}
