package difftest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Case is a list of steps on two fresh servers.
type Case struct {
	Name    string
	Flags   []string // extra flags for both servers
	Metrics bool     // both listen on a metrics port too
	Diverge bool     // the data differ on purpose in the end: no end state
	Steps   []Step
}

// Step is one line of a case. Its name starts with the row it proves.
type Step struct {
	Name string
	Op   Op
}

// Suite runs cases; make one per process.
type Suite struct {
	Bins Binaries

	mu   sync.Mutex
	seen map[string]bool // deviations that were found
}

// NewSuite returns a suite for the given programs.
func NewSuite(b Binaries) *Suite {
	return &Suite{Bins: b, seen: map[string]bool{}}
}

// Run runs each case as a parallel subtest and each step as a subtest of it.
func (su *Suite) Run(t *testing.T, cases []Case) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			pair := su.Pair(t, c.Flags, c.Metrics)
			for _, st := range c.Steps {
				t.Run(st.Name, func(t *testing.T) { su.step(t, pair, st.Op) })
			}
			if c.Diverge {
				return
			}
			t.Run("end state", func(t *testing.T) { su.step(t, pair, pair.endState()) })
		})
	}
}

// Pair is a case's session on the oracle and on the subject.
type Pair struct{ Etcd, Subject *Session }

// Pair starts two fresh servers, which end with the test.
func (su *Suite) Pair(t *testing.T, flags []string, metrics bool) Pair {
	t.Helper()
	dir := t.TempDir()
	name := "tarn"
	if su.Bins.Self {
		name = "etcd2"
	}
	p := Pair{
		Etcd:    su.session(t, "etcd", su.Bins.Etcd, dir, true, flags, metrics),
		Subject: su.session(t, name, su.Bins.Subject, dir, su.Bins.Self, flags, metrics),
	}
	errs := p.both(func(s *Session) Facts {
		var f Facts
		if err := s.Server.Start(t.Context()); err != nil {
			f.add("!start", err)
		}
		return f
	})
	if msg := slices.Concat(errs[0], errs[1]); len(msg) > 0 {
		t.Fatalf("servers do not start: %v", msg)
	}
	return p
}

func (su *Suite) session(t *testing.T, name, bin, dir string, isEtcd bool, flags []string, metrics bool) *Session {
	t.Helper()
	sv, err := NewServer(name, bin, dir, isEtcd, flags)
	if err != nil {
		t.Fatal(err)
	}
	if metrics {
		if sv.Metrics, err = freeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	s := newSession(sv, su.Bins)
	t.Cleanup(func() {
		s.close()
		if err := sv.Stop(true); err != nil {
			t.Error(err)
		}
	})
	return s
}

// both runs f on both sessions at the same time.
func (p Pair) both(f func(*Session) Facts) [2]Facts {
	var facts [2]Facts
	var wg sync.WaitGroup
	for i, s := range []*Session{p.Etcd, p.Subject} {
		wg.Go(func() { facts[i] = f(s) })
	}
	wg.Wait()
	return facts
}

// endState is compared after the last step of every case: silence on the open
// watch streams, then all data. A server that asks for a login is left out.
func (p Pair) endState() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		for _, w := range sortedKeys(s.watches) {
			for _, x := range Quiet(w)(ctx, s) {
				f.add(w+"."+x.Path, x.Value)
			}
		}
		return append(f, State()(ctx, s)...)
	}
}

// step runs op on both servers and fails t on a difference that is not listed,
// or on a listed one that is not there.
func (su *Suite) step(t *testing.T, p Pair, op Op) {
	t.Helper()
	facts := p.both(func(s *Session) Facts {
		ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
		defer cancel()
		return op(ctx, s)
	})
	if testing.Verbose() {
		t.Logf("%s answered:\n%s", p.Etcd.Server.Name, indent(facts[0].lines()))
	}
	for _, x := range facts[0] {
		if strings.HasPrefix(x.Path, "!") {
			t.Errorf("the step does not fit etcd: %s: %s", x.Path[1:], x.Value)
		}
	}
	diff := Diff(p.Etcd.Server.Name, facts[0], p.Subject.Server.Name, facts[1])
	d, listed := deviationFor(t.Name())
	switch {
	case su.Bins.Self || !listed:
		if len(diff) > 0 {
			t.Errorf("%d differences:\n%s", len(diff), indent(diff))
		}
	case len(diff) == 0:
		t.Errorf("deviations.go lists a difference, but there is none any more (%s)", d.Reason)
	default:
		su.note(d.Step)
		if !d.matches(facts[0], facts[1]) {
			t.Errorf("deviations.go expects (%s) these lines of tarn alone:\n%s\nbut the difference is:\n%s", d.Reason, indent(d.Tarn), indent(diff))
		}
	}
}

// indent prints at most 40 lines.
func indent(lines []string) string {
	if len(lines) == 0 {
		return "    (none)"
	}
	more := ""
	if len(lines) > 40 {
		more = fmt.Sprintf("\n    … and %d more", len(lines)-40)
		lines = lines[:40]
	}
	return "    " + strings.Join(lines, "\n    ") + more
}

func (su *Suite) note(deviation string) {
	su.mu.Lock()
	defer su.mu.Unlock()
	su.seen[deviation] = true
}

// UnusedDeviations returns the listed steps that no test found to differ.
func (su *Suite) UnusedDeviations() []string {
	su.mu.Lock()
	defer su.mu.Unlock()
	var unused []string
	for _, d := range deviations {
		if !su.seen[d.Step] {
			unused = append(unused, d.Step)
		}
	}
	return unused
}
