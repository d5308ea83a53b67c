//go:build zfs

package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// setClockEnv allows a test to set the clock of the machine, as one may in a virtual machine.
const setClockEnv = "TARN_TEST_CLOCK"

// machineClock sets the time of the machine, and knows the true one.
type machineClock struct {
	t     *testing.T
	begun time.Time // its monotonic part goes on whatever is set
}

func newMachineClock(t *testing.T) *machineClock {
	if os.Getenv(setClockEnv) == "" {
		t.Skipf("sets the clock of the machine: set %s=1 where that does no harm", setClockEnv)
	}
	c := &machineClock{t, time.Now()}
	t.Cleanup(func() { c.set(0) })
	return c
}

// set makes the clock wrong by a time.
func (c *machineClock) set(wrong time.Duration) {
	c.t.Helper()
	now := c.begun.Round(0).Add(time.Since(c.begun)).Add(wrong)
	tv := syscall.NsecToTimeval(now.UnixNano())
	if err := syscall.Settimeofday(&tv); err != nil {
		c.t.Fatal(err)
	}
}

// A server goes on through a clock that jumps: leases last, and snapshots are told apart.
func TestZFSClockJumpsUnderServer(t *testing.T) {
	clock := newMachineClock(t)
	s := newZFSStore(t)
	c := startChild(t, "--data-dir="+s.dir)
	cl := (&running{url: c.url}).client(t)
	leases := etcdserverpb.NewLeaseClient(cl)
	lease, err := leases.LeaseGrant(t.Context(), &etcdserverpb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, wrong := range []time.Duration{0, 365 * 24 * time.Hour, -365 * 24 * time.Hour, 0} {
		clock.set(wrong)
		if err := put(t, cl, "key", wrong.String()); err != nil {
			t.Error(err)
		}
		seen[s.create("--endpoint="+c.url)] = true
		seen[s.create("--endpoint="+c.url)] = true
		left, err := leases.LeaseTimeToLive(t.Context(), &etcdserverpb.LeaseTimeToLiveRequest{ID: lease.ID})
		if err != nil || left.TTL < 300 {
			t.Errorf("a lease of 600 s, after the clock went wrong by %v: %+v, %v", wrong, left, err)
		}
	}
	if len(seen) != 8 {
		t.Errorf("8 snapshots have the names %v", seen)
	}
	s.snapshot("verify", "--all")
}
