package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// What a run of TestCrash is set by. The run of `make test` is short.
const (
	crashRoundsEnv = "TARN_CRASH_ROUNDS"
	crashSeedEnv   = "TARN_CRASH_SEED"

	crashRoundsDefault = 5
	crashRoundsShort   = 2

	crashClients = 6
	// crashStepLimit is how long a step that must end may take. It is only there
	// to end a run that hangs.
	crashStepLimit = 2 * time.Minute
)

// crashRun kills one server after the other on one data directory, under load,
// and compares what the next one shows with what was promised.
type crashRun struct {
	t       *testing.T
	seed    uint64
	rnd     *rand.Rand
	bin     string
	dir     string
	hist    *crashHistory
	watches []*crashWatch
	clients []*crashClient
	server  *crashServer
	counts  struct{ kills, early, stops int }
}

// TestCrash: what was acknowledged survives kill -9 at any moment, nothing
// is half there, revisions never fall, and watches that resume miss nothing.
func TestCrash(t *testing.T) {
	rounds, seed := crashRoundsDefault, uint64(time.Now().UnixNano())
	if testing.Short() {
		rounds = crashRoundsShort
	}
	crashSetting(t, crashRoundsEnv, func(n uint64) { rounds = int(n) })
	crashSetting(t, crashSeedEnv, func(n uint64) { seed = n })
	t.Logf("to run this again: %s=%d %s=%d go test -run '^TestCrash$' ./cmd/tarn", crashSeedEnv, seed, crashRoundsEnv, rounds)

	r := newCrashRun(t, seed)
	begin := time.Now()
	for round := 1; round <= rounds; round++ {
		r.round(round)
		if round%25 == 0 {
			t.Logf("round %d of %d: %s, %s", round, rounds, r.hist.summary(), time.Since(begin).Round(time.Second))
		}
	}
	r.verify("at the end")
	r.server.kill(t)
	t.Logf("seed %d: rounds %d (kills under load %d, kills while starting %d, clean stops %d), %s, took %s",
		seed, rounds, r.counts.kills, r.counts.early, r.counts.stops, r.hist.summary(), time.Since(begin).Round(time.Second))
}

func crashSetting(t *testing.T, name string, set func(uint64)) {
	text := os.Getenv(name)
	if text == "" {
		return
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	set(n)
}

func newCrashRun(t *testing.T, seed uint64) *crashRun {
	r := &crashRun{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), hist: newCrashHistory()}
	r.bin, r.dir = buildTarn(t), t.TempDir()
	r.watches = []*crashWatch{newCrashWatch("everything", "\x00", "\x00")}
	for _, prefix := range []string{"/registry/pods/", "/registry/leases/"} {
		r.watches = append(r.watches, newCrashWatch(prefix, prefix, prefix[:len(prefix)-1]+"0"))
	}
	for n := range crashClients {
		r.clients = append(r.clients, newCrashClient(n, seed, r.hist))
	}
	return r
}

// round starts a server, compares, and ends it under load.
func (r *crashRun) round(n int) {
	if r.rnd.IntN(6) == 0 {
		early := startCrashServer(r.t, r.bin, r.dir)
		time.Sleep(time.Duration(r.rnd.IntN(40_000)) * time.Microsecond)
		early.kill(r.t)
		r.counts.early++
	}
	r.verify(fmt.Sprintf("round %d", n))
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	done := r.load(ctx)
	life := 5*time.Millisecond + time.Duration(r.rnd.IntN(395_000))*time.Microsecond
	if r.rnd.IntN(25) == 0 {
		life += 3 * time.Second // short leases expire
	}
	time.Sleep(life)
	if r.rnd.IntN(20) == 0 {
		r.counts.stops++
		r.server.stop(r.t, syscall.SIGTERM)
	} else {
		r.counts.kills++
		r.server.kill(r.t)
	}
	cancel()
	r.wait(done, "the clients to notice the end of the server")
	r.server = nil
}

// load lets clients write until the server ends.
func (r *crashRun) load(ctx context.Context) <-chan struct{} {
	ends := make(chan error)
	for _, c := range r.clients {
		go func() { ends <- c.run(ctx, r.server.conn) }()
	}
	janitor := &crashJanitor{hist: r.hist, watches: r.watches, rnd: rand.New(rand.NewPCG(r.seed, r.rnd.Uint64()))}
	go func() { ends <- janitor.run(ctx, r.server.conn) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range len(r.clients) + 1 {
			if err := <-ends; err != nil {
				r.t.Error(err)
			}
		}
	}()
	return done
}

func (r *crashRun) wait(done <-chan struct{}, what string) {
	r.t.Helper()
	select {
	case <-done:
	case <-time.After(crashStepLimit):
		r.t.Fatalf("seed %d: still waiting for %s", r.seed, what)
	}
}

// verify checks the directory that the last server has left, starts the next
// one, and compares what it shows with the history. The server is left running.
func (r *crashRun) verify(when string) {
	t := r.t
	t.Helper()
	verdict := r.check(when)
	r.server = startCrashServer(t, r.bin, r.dir)
	r.server.dial(t)
	ctx, cancel := context.WithTimeout(t.Context(), crashStepLimit)
	defer cancel()
	for _, w := range r.watches {
		w.start(t.Context(), r.server.conn)
	}
	fence, err := r.hist.fence(ctx, r.server.conn)
	if err != nil {
		t.Fatalf("seed %d, %s: first write: %v\n%s", r.seed, when, err, r.server.log())
	}
	err = r.compare(ctx, fence, verdict)
	if err == nil && t.Failed() {
		err = fmt.Errorf("a client has failed")
	}
	if err != nil {
		t.Fatalf("seed %d, %s, data in %s: %v\n%s", r.seed, when, r.keep(), err, r.server.log())
	}
}

// check runs tarn check on the stopped directory.
func (r *crashRun) check(when string) *checkVerdict {
	if names, err := os.ReadDir(r.dir); err != nil || len(names) == 0 {
		return nil // the first start is still to come
	}
	v, err := checkWithBinary(r.bin, r.dir)
	if err == nil && v != nil {
		err = r.hist.checkVerdict(v)
	}
	if err != nil {
		r.t.Fatalf("seed %d, %s, data in %s: tarn check: %v", r.seed, when, r.keep(), err)
	}
	return v
}

// compare holds everything that the server shows against the history.
func (r *crashRun) compare(ctx context.Context, fence int64, verdict *checkVerdict) error {
	for _, w := range r.watches {
		if err := w.waitFor(ctx, fence); err != nil {
			return err
		}
	}
	all := r.watches[0].take(fence)
	for _, w := range r.watches[1:] {
		if err := sameEvents(w.name, w.take(fence), filterEvents(all, w.key, w.end)); err != nil {
			return err
		}
	}
	if err := r.hist.replay(all, fence); err != nil {
		return err
	}
	if err := r.hist.compareState(ctx, r.server.conn, fence); err != nil {
		return err
	}
	if err := compareHash(ctx, r.server.conn, verdict); err != nil {
		return err
	}
	return r.hist.compareLeases(ctx, r.server.conn)
}

// keep keeps the data directory of a failed run.
func (r *crashRun) keep() string {
	kept, err := os.MkdirTemp("", "tarn-crash-")
	if err != nil {
		return r.dir
	}
	if err := os.CopyFS(kept, os.DirFS(r.dir)); err != nil {
		r.t.Logf("keep the data directory: %v", err)
	}
	return kept
}
