package difftest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// defaultSteps keeps the random test well below a minute.
const defaultSteps = 4000

// maxWatches bounds the watch streams open at the same time.
const maxWatches = 12

func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

// TestRandom sends one random sequence of requests to both servers and compares
// every answer, then all events of all watches, then all data and hashes.
func TestRandom(t *testing.T) {
	t.Parallel()
	seed := number(t, EnvSeed, uint64(time.Now().UnixNano()))
	steps := number(t, EnvSteps, defaultSteps)
	t.Logf("seed %d, %d steps; repeat with %s=%d %s=%d", seed, steps, EnvSeed, seed, EnvSteps, steps)
	r := &randomRun{t: t, pair: suite.Pair(t, nil, false), g: newGenerator(seed), codes: map[string]int{}}
	for i := range steps {
		r.at = i
		r.one()
	}
	r.closeWatches(true)
	r.compare("state", "all data in the end", State())
	for _, kind := range sortedKeys(r.codes) {
		t.Logf("%s: %d", kind, r.codes[kind])
	}
}

type randomRun struct {
	t    *testing.T
	pair Pair
	g    *generator
	at   uint64

	opened  int
	codes   map[string]int // how often each kind of request got each code
	watches []randomWatch
}

type randomWatch struct {
	name  string
	start int64
}

func (r *randomRun) one() {
	switch n := r.g.IntN(1000); {
	case n < 12:
		r.watch()
	case n < 22:
		r.flush()
		r.compact()
	case n < 26:
		r.keepalive()
	default:
		req := r.g.request()
		r.compare("request", req, Call(req))
	}
}

// compare runs op on both servers, fails on a difference and notes the revision.
func (r *randomRun) compare(kind string, what any, op Op) Facts {
	r.t.Helper()
	facts := r.pair.both(func(s *Session) Facts {
		ctx, cancel := context.WithTimeout(r.t.Context(), stepTimeout)
		defer cancel()
		return op(ctx, s)
	})
	p := r.pair
	if diff := Diff(p.Etcd.Server.Name, facts[0], p.Subject.Server.Name, facts[1]); len(diff) > 0 {
		r.t.Fatalf("step %d, %s {%v}: %d differences:\n%s", r.at, kind, what, len(diff), indent(diff))
	}
	for _, x := range facts[0] {
		if x.Path == "code" {
			r.codes[fmt.Sprintf("%s %T %s", kind, what, x.Value)]++
		}
		if x.Path == "msg.header.revision" {
			if rev, err := strconv.ParseInt(x.Value, 10, 64); err == nil {
				r.g.current = rev
			}
		}
	}
	return facts[0]
}

func (r *randomRun) compact() {
	req := r.g.compaction()
	for _, x := range r.compare("compact", req, Call(req)) {
		if x.Path == "code" && x.Value == "OK" {
			r.g.compacted = req.Revision
		}
	}
}

func (r *randomRun) keepalive() {
	id := 1 + r.g.Int64N(6)
	r.compare("keepalive", id, KeepAlive(id, id+1))
}

// watch opens a stream with one watch and waits until it has caught up, because
// a later compaction would cancel it or not, depending on timing.
func (r *randomRun) watch() {
	if len(r.watches) == maxWatches {
		r.closeWatches(false)
	}
	r.opened++
	w, req := randomWatch{name: fmt.Sprint("w", r.opened)}, r.g.watch()
	w.start = req.StartRevision
	r.compare("open", w.name, Open(w.name))
	for _, x := range r.compare("watch", req, Ask(w.name, 1, Create(req))) {
		if x.Path == "msg[0].canceled" {
			return
		}
	}
	if w.start > 0 && w.start < r.g.compacted {
		r.compare("compacted watch", req, Recv(w.name, 1))
		return
	}
	r.watches = append(r.watches, w)
	r.drain(w)
}

// drain compares the events of w up to now, unless it still waits for its start.
func (r *randomRun) drain(w randomWatch) {
	r.t.Helper()
	if w.start <= r.g.current {
		r.compare("events of watch from "+fmt.Sprint(w.start), w.name, eventsUntilProgress(w.name))
	}
}

func (r *randomRun) flush() {
	for _, w := range r.watches {
		r.drain(w)
	}
}

// closeWatches compares the rest of the events and closes all streams. With
// finish it first writes until every future start is reached.
func (r *randomRun) closeWatches(finish bool) {
	for finish && r.waiting() {
		req := proto.Message(Put("last", "1"))
		r.compare("last put", req, Call(req))
	}
	r.flush()
	for _, w := range r.watches {
		r.compare("hang up", w.name, HangUp(w.name))
	}
	r.watches = nil
}

func (r *randomRun) waiting() bool {
	for _, w := range r.watches {
		if w.start > r.g.current {
			return true
		}
	}
	return false
}

// eventsUntilProgress asks stream w for progress until it answers with the
// current revision and compares the events before that, without the borders
// between messages of a catch-up.
func eventsUntilProgress(w string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		current, err := s.current(ctx)
		if err != nil {
			f.status(s, err)
			return f
		}
		n := 0
		for asked, end := 1, time.Now().Add(recvTimeout); time.Now().Before(end); asked++ {
			f = append(f, s.send(w, []*pb.WatchRequest{Progress()})...)
			for {
				m, ok := s.watches[w].next(askAgain)
				if !ok {
					break
				}
				if m.WatchId == -1 && len(m.Events) == 0 {
					if m.Header.Revision == current {
						s.drop(w, m, asked)
						return f
					}
					continue
				}
				if len(m.Events) == 0 {
					f.message(s, fmt.Sprintf("message[%d]", n), m)
				}
				for _, e := range m.Events {
					f.message(s, fmt.Sprintf("event[%d]", n), e)
					n++
				}
			}
		}
		f.add("!missing", "progress")
		return f
	}
}
