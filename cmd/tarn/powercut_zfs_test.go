//go:build zfs

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"
)

// What TestZFSPowerCut is set by: packaging/powercut.sh does it.
const (
	powercutDataEnv    = "TARN_POWERCUT_DATA"    // data directory, on a dataset
	powercutJournalEnv = "TARN_POWERCUT_JOURNAL" // file outside the virtual machine
	powercutCommandEnv = "TARN_POWERCUT_COMMAND" // cuts the power; "" to check only
	powercutBootEnv    = "TARN_POWERCUT_BOOT"    // number of this boot, from 1

	powercutWrites = 300 // about the most that are acknowledged before a cut
)

// TestZFSPowerCut is one boot of a machine that loses its power again and again. It checks
// the data directory against all that was promised since the first boot, starts a server,
// compares what that shows, and has the power cut under load.
func TestZFSPowerCut(t *testing.T) {
	dir, journal := os.Getenv(powercutDataEnv), os.Getenv(powercutJournalEnv)
	if dir == "" || journal == "" {
		t.Skip("needs a virtual machine whose power can be cut: packaging/powercut.sh has one")
	}
	var boot uint64
	crashSetting(t, powercutBootEnv, func(n uint64) { boot = n })
	seed := uint64(time.Now().UnixNano())
	crashSetting(t, crashSeedEnv, func(n uint64) { seed = n })
	seed += boot

	h, w := openCrashJournal(t, journal)
	promised, watched := h.published, w.seen
	r := &crashRun{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), hist: h, bin: buildTarn(t), dir: dir, watches: []*crashWatch{w}}
	for n := range fullLoadClients {
		c := newCrashClient(n, seed, h)
		c.keys = fullLoadKeys
		c.resume(int64(boot))
		r.clients = append(r.clients, c)
	}
	begin := time.Now()
	r.verify(fmt.Sprintf("boot %d", boot))
	fmt.Printf("boot %d: promised was revision %d, watched %d; %s; checked in %s\n",
		boot, promised, watched, h.summary(), time.Since(begin).Round(time.Millisecond))
	if cut := os.Getenv(powercutCommandEnv); cut != "" {
		r.cutPower(cut)
	}
}

// answered is how many writes were acknowledged.
func (h *crashHistory) answered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acknowledged
}

// resume gives a client the leases that it had before the cut. boot keeps what it makes
// anew apart from what was asked for then.
func (c *crashClient) resume(boot int64) {
	c.grants = boot << 20
	for id, l := range c.hist.leases {
		if id>>32 == int64(c.number+1) && l.revoke == nil && l.long() && len(c.leases) < crashMaxLeases {
			c.leases = append(c.leases, l)
		}
	}
}

// cutPower has the power cut in the middle of a load, after some writes. It does not return.
func (r *crashRun) cutPower(command string) {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	enough := r.hist.answered() + powercutWrites/10 + r.rnd.IntN(powercutWrites)
	r.load(ctx)
	for begin := time.Now(); r.hist.answered() < enough && time.Since(begin) < crashStepLimit; {
		time.Sleep(time.Duration(r.rnd.IntN(20_000)) * time.Microsecond)
	}
	out, err := exec.Command(command).CombinedOutput()
	r.t.Fatalf("the power is still there after %s: %v: %s", command, err, out)
}
