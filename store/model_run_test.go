package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestModel runs random operations on a store and on a naive model of etcd and
// compares every answer, the whole history after each restart, and all events
// of all watches. TARN_MODEL_STEPS sets the number of operations (default 1,500)
// and TARN_MODEL_SEED the seed.
func TestModel(t *testing.T) {
	steps, seed := envInt(t, "TARN_MODEL_STEPS", 1500), envInt(t, "TARN_MODEL_SEED", rand.Int64())
	const perRun = 300
	for run := int64(0); run*perRun < steps; run++ {
		c := modelCase{seed: seed + run, ops: make([]modelStep, perRun)}
		r := rand.New(rand.NewPCG(uint64(c.seed), 0))
		for i := range c.ops {
			c.ops[i] = modelStep{seed: r.Uint64(), kind: pickKind(r)}
		}
		if f := c.run(t); f != nil {
			t.Logf("seed %d: %s", c.seed, f.text)
			least, lf := c.shrink(t, f)
			t.Fatalf("TARN_MODEL_SEED=%d fails; shrunk from %d to %d operations:\n%s\n%s", c.seed, perRun, len(least.ops), strings.Join(lf.log, "\n"), lf.text)
		}
	}
}

func envInt(t *testing.T, name string, def int64) int64 {
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return n
}

// modelStep is one operation. Its details come from its own seed and the state that it
// meets, so a case stays runnable when others are taken out.
type modelStep struct {
	seed uint64
	kind string
}

// modelCase is a sequence of operations on an empty store.
type modelCase struct {
	seed int64 // picks the options
	ops  []modelStep
}

// modelFailure is a difference between the store and the model.
type modelFailure struct {
	at   int // the operation
	text string
	log  []string // of the operations up to there
}

func (c modelCase) run(t *testing.T) (f *modelFailure) {
	rnd := rand.New(rand.NewPCG(uint64(c.seed), 1))
	o := Options{Dir: t.TempDir(), CheckpointBytes: []int64{1, 300, 5000, 0}[rnd.IntN(4)]}
	s, err := Open(o)
	must(t, err)
	r := &modelRunner{s: s, m: newModel(), term: firstTerm, bigValues: rnd.IntN(4) == 0, t: t}
	r.log = []string{fmt.Sprintf("checkpoint bytes %d, big values %v", o.CheckpointBytes, r.bigValues)}
	at := 0
	defer func() {
		if text, ok := recover().(modelMismatch); ok {
			f = &modelFailure{at: at, text: string(text), log: r.log}
		} else if f != nil {
			panic("unreachable")
		}
		r.closeAll()
		_ = r.s.Close()
	}()
	for at = range c.ops {
		r.step(c.ops[at])
	}
	r.step(modelStep{kind: "reopen"})
	return nil
}

// shrink takes out operations, large stretches first, as long as the case still fails.
func (c modelCase) shrink(t *testing.T, f *modelFailure) (modelCase, *modelFailure) {
	tries := 0
	c.ops = c.ops[:min(f.at+1, len(c.ops))]
	for size := len(c.ops) / 2; size > 0 && tries < 300; size /= 2 {
		for from := 0; from < len(c.ops) && tries < 300; {
			tries++
			less := c
			less.ops = append(append([]modelStep(nil), c.ops[:from]...), c.ops[min(from+size, len(c.ops)):]...)
			lf := less.run(t)
			if lf == nil {
				from += size
				continue
			}
			less.ops = less.ops[:min(lf.at+1, len(less.ops))]
			c, f = less, lf
		}
	}
	return c, f
}

// modelMismatch is what a comparison panics with.
type modelMismatch string

// modelRunner applies operations to a store and its model.
type modelRunner struct {
	t         *testing.T
	s         *Store
	m         *model
	rnd       *rand.Rand // of the current operation
	term      int64
	bigValues bool
	putKeys   map[string]bool // of the transaction being made up
	streams   [3]*modelStream
	readers   []*Reader
	log       []string
}

func (r *modelRunner) failf(format string, args ...any) {
	panic(modelMismatch(fmt.Sprintf(format, args...)))
}

func (r *modelRunner) logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("rev %d, C %d: ", r.m.rev, r.m.compacted)+fmt.Sprintf(format, args...))
}

// sameErr compares errors and reports whether there is none.
func (r *modelRunner) sameErr(what string, got, want error) bool {
	if (want == nil) != (got == nil) || want != nil && !errorsIs(got, want) {
		r.failf("%s: error %v, want %v", what, got, want)
	}
	return want == nil
}

func (r *modelRunner) noErr(what string, err error) { r.sameErr(what, err, nil) }

func (r *modelRunner) equal(what string, got, want any) {
	if got != want {
		r.failf("%s: %v, want %v", what, got, want)
	}
}

// chance is true once in n times.
func (r *modelRunner) chance(n int) bool { return r.rnd.IntN(n) == 0 }

// modelKinds are the operations and how often they come.
var modelKinds = []struct {
	name   string
	weight int
	do     func(*modelRunner)
}{
	{"put", 16, (*modelRunner).stepPut},
	{"delete", 5, (*modelRunner).stepDelete},
	{"range", 10, (*modelRunner).stepRange},
	{"txn", 14, (*modelRunner).stepTxn},
	{"compact", 4, (*modelRunner).stepCompact},
	{"hash", 2, (*modelRunner).stepHash},
	{"lease", 6, (*modelRunner).stepLease},
	{"alarm", 1, (*modelRunner).stepAlarm},
	{"reader", 3, (*modelRunner).stepReader},
	{"checkpoint", 3, (*modelRunner).stepCheckpoint},
	{"defragment", 1, (*modelRunner).stepDefragment},
	{"snapshot", 1, (*modelRunner).stepSnapshot},
	{"watch", 6, (*modelRunner).stepWatch},
	{"cancel", 2, (*modelRunner).stepCancel},
	{"progress", 3, (*modelRunner).stepProgress},
	{"receive", 6, (*modelRunner).stepReceive},
	{"close stream", 1, (*modelRunner).stepCloseStream},
	{"reopen", 1, (*modelRunner).stepReopen},
}

func pickKind(r *rand.Rand) string {
	all := 0
	for _, k := range modelKinds {
		all += k.weight
	}
	n := r.IntN(all)
	for _, k := range modelKinds {
		if n -= k.weight; n < 0 {
			return k.name
		}
	}
	panic("unreachable")
}

func (r *modelRunner) step(x modelStep) {
	r.rnd = rand.New(rand.NewPCG(x.seed, 2))
	for _, k := range modelKinds {
		if k.name == x.kind {
			k.do(r)
		}
	}
	r.checkState()
}

// checkState compares what is to be seen after every operation.
func (r *modelRunner) checkState() {
	st := r.s.Status()
	r.equal("Status.Revision", st.Revision, r.m.rev)
	r.equal("Status.CompactRevision", st.CompactRevision, r.m.compacted)
	r.equal("Status.Keys", st.Keys, int64(len(r.m.at(r.m.rev, everything))))
	r.equal("Status.Leases", st.Leases, len(r.m.leases))
	r.equal("Term", r.s.Term(), r.term)
	r.noErr("Err", r.s.Err())
	streams, watchers := 0, 0
	for _, st := range r.streams {
		if st != nil {
			streams++
			watchers += st.active()
			r.checkReady(st)
		}
	}
	r.equal("Status.Streams", st.Streams, streams)
	r.equal("Status.Watchers", st.Watchers, watchers)
}
