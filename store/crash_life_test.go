package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// crashLife is the life of a store, over crashes, as its one client sees it.
type crashLife struct {
	t    *testing.T
	rnd  *rand.Rand
	m    *model // what was acknowledged
	id   string // of the store, "" until it was opened
	term int64  // of the last start
	// shown is the newest revision that was seen, by whatever means.
	shown int64
	seen  []*Event // of a watch of everything, over all starts
	watch *WatchStream
	// pending is what the request without an answer would have done.
	pending   func(*model)
	ops       int
	auths     int // changes of users and roles that were asked for
	refusals  int
	mayRefuse bool // the disk is full at times
}

func newCrashLife(t *testing.T, seed uint64) *crashLife {
	return &crashLife{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), m: newModel()}
}

// crashOptions make checkpoints, segments and the reserve small, so that a short life
// has many of each.
func crashOptions(dir string, fs vfs.FS, checkpointBytes int64) Options {
	return Options{Dir: dir, FS: fs, Quota: -1, CheckpointBytes: checkpointBytes, CheckpointAge: time.Hour,
		segmentBytes: 4 << 10, reserveBytes: 8 << 10, freedWithin: 1}
}

// crashDir is a directory in memory where there is one: what is synced to the real
// disk is of no interest here.
func crashDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tarn-crash-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// open starts the store and resumes the watch.
func (l *crashLife) open(o Options) (*Store, error) {
	o.ExpectID = l.id
	s, err := Open(o)
	if err != nil {
		return nil, err
	}
	if s.Term() <= l.term && l.id != "" && !l.mayRefuse {
		l.t.Errorf("term %d after term %d", s.Term(), l.term)
	}
	l.id, l.term = s.ID(), s.Term()
	l.watch = s.NewWatchStream(func() {})
	next := int64(1)
	if n := len(l.seen); n > 0 {
		next = l.seen[n-1].Revision() + 1
	}
	if _, err := l.watch.Create(WatchRequest{KeyRange: everything, Start: next}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, l.look(s)
}

// look takes what the store shows now.
func (l *crashLife) look(s *Store) error {
	l.shown = max(l.shown, s.Revision())
	for {
		m, ok, err := l.watch.Next()
		if err != nil || !ok {
			return err
		}
		l.watch.Sent(m)
		if m.Kind == WatchCanceled {
			return fmt.Errorf("watch canceled at compact revision %d", m.CompactRevision)
		}
		m = whole(m)
		l.seen = append(l.seen, m.Events...)
		if n := len(m.Events); n > 0 {
			l.shown = max(l.shown, m.Events[n-1].Revision())
		}
	}
}

// live opens the store and executes a script until its end, or until a request has no
// answer. The store, if there is one, is left open.
func (l *crashLife) live(o Options, script []string) (*Store, error) {
	s, err := l.open(o)
	for i := 0; err == nil && i < len(script); i++ {
		if script[i] != "reopen" {
			err = l.do(s, script[i])
			continue
		}
		if err = s.Close(); err == nil {
			s, err = l.open(o)
		}
	}
	return s, err
}

// do sends one request.
func (l *crashLife) do(s *Store, kind string) error {
	l.ops++
	if l.mayRefuse {
		s.space.mu.Lock()
		s.space.checked = time.Time{} // the last look at the disk is too old
		s.space.mu.Unlock()
	}
	op := l.request(kind)
	rev, err := op.run(s)
	switch {
	case err == nil && op.apply != nil:
		op.apply(l.m)
		if rev != l.m.rev {
			l.t.Errorf("%s: answered with revision %d instead of %d", kind, rev, l.m.rev)
		}
	case err == nil:
	case errors.Is(err, ErrNoSpace) && l.mayRefuse:
		l.refusals++
	case op.apply == nil && s.Err() == nil:
		// A checkpoint or a defragmentation that failed has changed nothing.
	default:
		l.pending = op.apply
		if s.Err() == nil {
			l.t.Errorf("%s: failed, and the store goes on: %v", kind, err)
		}
		return errors.Join(err, l.look(s))
	}
	return l.look(s)
}

// recovered compares a store that was opened after a crash with what was acknowledged
// before it: the request without an answer is there wholly or not at all.
func (l *crashLife) recovered(s *Store) error {
	err := sameAsModel(s, l.m)
	if err != nil && l.pending != nil {
		with := l.m.clone()
		l.pending(with)
		withErr := sameAsModel(s, with)
		if withErr == nil {
			l.m, err = with, nil
		} else {
			err = fmt.Errorf("neither without the last request: %w; nor with it: %w", err, withErr)
		}
	}
	l.pending = nil
	if err != nil {
		return err
	}
	if l.shown > l.m.rev {
		return fmt.Errorf("revision %d was shown, now it is %d", l.shown, l.m.rev)
	}
	return sameHistory(l.seen, l.m.history)
}

func (m *model) clone() *model {
	c := *m
	c.history, c.stored = slices.Clone(m.history), slices.Clone(m.stored)
	c.leases, c.alarms, c.hashes = maps.Clone(m.leases), maps.Clone(m.alarms), maps.Clone(m.hashes)
	return &c
}

// sameHistory compares what a watch has shown with what was written.
func sameHistory(seen []*Event, history []modelRecord) error {
	if len(seen) > len(history) {
		return fmt.Errorf("the watch has shown %d changes, there are %d", len(seen), len(history))
	}
	for i, e := range seen {
		r := history[i]
		if e.main != r.main || e.key != string(r.kv.Key) || e.delete != r.dead || !r.dead && !bytes.Equal(e.kv, encodeKV(r.kv)) {
			return fmt.Errorf("the watch has shown %s at %d, written was %s at %d", e.key, e.main, r.kv.Key, r.main)
		}
	}
	return nil
}

// sameAsModel compares all that can be read.
func sameAsModel(s *Store, m *model) error {
	if st := s.Status(); st.Revision != m.rev || st.CompactRevision != m.compacted {
		return fmt.Errorf("revision %d compacted %d instead of %d compacted %d", st.Revision, st.CompactRevision, m.rev, m.compacted)
	}
	for rev := max(1, m.compacted); rev <= m.rev; rev += 1 + (m.rev-rev)/4 {
		_, got, err := read(s, &RangeRequest{KeyRange: everything, Revision: rev})
		if err != nil {
			return fmt.Errorf("read revision %d: %w", rev, err)
		}
		want := m.at(rev, everything)
		if len(got) != len(want) {
			return fmt.Errorf("%d keys instead of %d at revision %d", len(got), len(want), rev)
		}
		for i := range want {
			if !bytes.Equal(encodeKV(got[i]), encodeKV(want[i])) {
				return fmt.Errorf("at revision %d: %s at %d instead of %s at %d", rev, got[i].Key, got[i].ModRevision, want[i].Key, want[i].ModRevision)
			}
		}
	}
	if err := sameLeases(s, m); err != nil {
		return err
	}
	if got, want := authText(s.Auth()), authText(m.auth); got != want {
		return fmt.Errorf("users and roles are %s instead of %s", got, want)
	}
	h, err := s.HashKV(bg, 0)
	if err == nil && h.Hash != m.hash(m.rev) {
		err = fmt.Errorf("hash %08x instead of %08x", h.Hash, m.hash(m.rev))
	}
	return err
}

func sameLeases(s *Store, m *model) error {
	ids, want := s.Leases(), slices.Sorted(maps.Keys(m.leases))
	slices.Sort(ids)
	if !slices.Equal(ids, want) {
		return fmt.Errorf("leases %d instead of %d", ids, want)
	}
	for _, id := range ids {
		info, _ := s.LeaseTimeToLive(id, true)
		if info.Granted != m.leases[id] || info.TTL > info.Granted {
			return fmt.Errorf("lease %d of %d s: granted %d, left %d", id, m.leases[id], info.Granted, info.TTL)
		}
		if keys := m.leaseKeys(id); !slices.Equal(info.Keys, keys) {
			return fmt.Errorf("lease %d: keys %q instead of %q", id, info.Keys, keys)
		}
	}
	return nil
}

// checkClean runs Check, which must find nothing and agree with what was acknowledged.
func (l *crashLife) checkClean(dir string) error {
	r, err := Check(bg, dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && l.id == "":
		return nil // the crash came before the store was made
	case err != nil:
		return err
	case len(r.Findings) > 0:
		return fmt.Errorf("check found %q", r.Findings)
	case r.Revision < l.shown || r.CompactRevision < l.m.compacted:
		return fmt.Errorf("check: revision %d compacted %d, before that it was %d and %d", r.Revision, r.CompactRevision, l.shown, l.m.compacted)
	}
	return nil
}

// files describes a directory, for the text of a failure.
func files(dir string) string {
	var b strings.Builder
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			fmt.Fprintf(&b, " %s (%d)", strings.TrimPrefix(path, dir), info.Size())
		}
		return nil
	})
	return b.String()
}
