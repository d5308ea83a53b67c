package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tarn-kv/tarn/store/auth"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/wal"
)

// restartGrace is what a lease gets on top of its TTL after a restart (etcd:
// one election timeout).
const restartGrace = time.Second

// firstTerm is the term of a new store's first start (etcd's).
const firstTerm = 2

// recovery rebuilds the memory of a store from its files.
type recovery struct {
	s       *Store
	meta    tree.Meta
	adopted bool // the tree is new to this store, and has no log
	leases  map[int64]*lease
	frames  int
	records int
}

// recoveryStep is the number of records after which recovery tells that it goes on.
const recoveryStep = 1000

// advance counts a record that was read.
func (r *recovery) advance() {
	r.records++
	if observe := r.s.opts.ObserveRecovery; observe != nil && r.records%recoveryStep == 0 {
		observe(r.records)
	}
}

func (r *recovery) run() error {
	if err := r.loadTree(); err != nil {
		return err
	}
	if err := r.replayLog(); err != nil {
		return err
	}
	r.s.tree.LetGo()
	r.finish()
	if err := r.boot(); err != nil {
		return err
	}
	if r.adopted {
		// From here on the tree says that there is a log.
		if err := r.s.Checkpoint(context.Background()); err != nil && !vfs.IsNoSpace(err) {
			return err
		}
	}
	r.resumeCompaction()
	return nil
}

// finish makes visible what was recovered.
func (r *recovery) finish() {
	s := r.s
	s.published.Store(s.head.revision)
	s.compacted.Store(s.head.compacted)
	s.hub.rev = s.head.revision
	s.auth.published.Store(s.auth.head)
	for _, l := range r.leases {
		l.expiry = now().Add(ttlDuration(l.ttl) + restartGrace)
		s.leases.add(l)
	}
	s.mem.index.ascend(span{open: true}, func(e *entry) bool {
		if e.live() && e.last.lease != 0 {
			s.leases.move(e.key, 0, e.last.lease)
		}
		return true
	})
	s.markGrowth()
}

func (r *recovery) loadTree() error {
	s := r.s
	s.auth.head = auth.New()
	s.head.revision = max(1, r.meta.Revision)
	s.head.compacted = max(r.meta.ScheduledCompact, r.meta.FinishedCompact)
	s.mem.floor = s.head.compacted
	s.term = max(r.meta.Term, firstTerm-1)
	s.ckpt.treeRev = r.meta.Revision
	s.ckpt.treeSeq = r.meta.Seq
	leases, err := s.tree.Leases()
	if err != nil {
		return damage(err)
	}
	for _, l := range leases {
		r.leases[l.ID] = &lease{id: l.ID, ttl: l.TTL}
	}
	alarms, err := s.tree.Alarms()
	if err != nil {
		return damage(err)
	}
	for _, a := range alarms {
		state := alarmOn
		if a.Own {
			state = alarmOwn
		}
		s.alarms.set(Alarm{MemberID: a.MemberID, Type: AlarmType(a.Type)}, state)
	}
	if err := s.loadAuth(); err != nil {
		return damage(err)
	}
	v := s.tree.View()
	defer v.Close()
	var bad error
	err = v.Scan(Revision{}, func(rev Revision, dead bool, value []byte) bool {
		key, rec, err := recordOf(rev, dead, value)
		if err != nil {
			bad = err
			return false
		}
		r.advance()
		if key == "" {
			s.mem.marks = append(s.mem.marks, rev)
		} else {
			s.mem.load(key, rec)
		}
		return true
	})
	if err = errors.Join(err, bad); err != nil {
		return damage(fmt.Errorf("read %s: %w", s.tree.Path(), err))
	}
	return nil
}

// recordOf is what the index keeps of an encoded record.
func recordOf(rev Revision, dead bool, value []byte) (key string, rec record, err error) {
	kv, err := tree.DecodeKV(value)
	if err == nil {
		err = tree.CheckRecord(rev, dead, kv, len(value))
	}
	if err != nil {
		return "", record{}, fmt.Errorf("record %d/%d: %w", rev.Main, rev.Sub, err)
	}
	rec = record{main: rev.Main, sub: int32(rev.Sub), size: int32(len(value))}
	if !dead {
		rec.create, rec.version, rec.lease = kv.Create, kv.Version, kv.Lease
	}
	return string(kv.Key), rec, nil
}

func (r *recovery) replayLog() (err error) {
	s := r.s
	s.wal, err = wal.Open(wal.Options{
		FS: s.opts.FS, Dir: filepath.Join(s.opts.Dir, walName), Logger: s.log, StoreID: s.id,
		AfterSeq: r.meta.Seq, MustReach: !s.opts.AllowMissingLog && !r.adopted, SegmentSize: s.opts.segmentBytes, ReserveBytes: s.opts.reserveBytes,
		ObserveSync: s.opts.ObserveSync,
	}, r.replayFrame)
	switch {
	case errors.Is(err, wal.ErrCorrupt), errors.Is(err, wal.ErrForeign):
		return damage(err)
	case err != nil:
		return fmt.Errorf("open the log: %w", err)
	}
	s.ckpt.seq = s.wal.LastSeq()
	s.ckpt.rev = s.head.revision
	return nil
}

// replayFrame applies one frame of the log; the payload is kept.
func (r *recovery) replayFrame(seq uint64, payload []byte) error {
	r.frames++
	if err := decodeFrame(payload, r); err != nil {
		return damage(fmt.Errorf("frame %d of the log: %w", seq, err))
	}
	return nil
}

// replayChange applies a change that the log has and the tree has not.
func (r *recovery) replayChange(rev Revision, dead bool, value []byte) error {
	s := r.s
	r.advance()
	key, rec, err := recordOf(rev, dead, value)
	if err != nil {
		return err
	}
	if rev.Main < s.head.revision || rev.Main > s.head.revision+1 {
		return fmt.Errorf("revision %d follows revision %d", rev.Main, s.head.revision)
	}
	s.mem.append(key, rec, value)
	s.mem.prefixes.added(key, len(value))
	s.head.revision = rev.Main
	return nil
}

func (r *recovery) replayControl(c control) error {
	s := r.s
	s.ckpt.controls = append(s.ckpt.controls, c)
	switch c.kind {
	case recordGrant:
		r.leases[c.a] = &lease{id: c.a, ttl: c.b}
	case recordRevoke:
		delete(r.leases, c.a)
	case recordCompact:
		s.head.compacted = max(s.head.compacted, c.a)
	case recordAlarm:
		s.alarms.set(Alarm{MemberID: uint64(c.b), Type: AlarmType(c.a)}, c.state)
	case recordBoot:
		s.term = max(s.term, c.a)
	case recordAuth:
		next, err := s.auth.head.Apply(c.auth)
		if err != nil {
			return err
		}
		s.auth.head = next
	}
	return nil
}

// boot notes the start in the log. A full disk must not keep the server down.
func (r *recovery) boot() error {
	s := r.s
	s.term++
	err := s.submit(func(b *batch) error {
		b.control(control{kind: recordBoot, a: s.term})
		return nil
	})
	if errors.Is(err, ErrNoSpace) {
		err = nil
	}
	return err
}

// resumeCompaction goes on with what a crash has cut short.
func (r *recovery) resumeCompaction() {
	s := r.s
	s.compact.finished = r.meta.FinishedCompact
	if s.compactionLeft(r.meta.FinishedCompact) {
		s.compact.mu.Lock()
		s.compact.queue = append(s.compact.queue, s.head.compacted)
		s.runCompactor()
		s.compact.mu.Unlock()
	}
}

// compactionLeft tells whether recovery has found a compaction that was not worked off.
func (s *Store) compactionLeft(finished int64) bool {
	leftover := s.mem.changes.len() > 0 && s.mem.changes.at(0).main < s.head.compacted
	return s.head.compacted > finished || leftover
}
