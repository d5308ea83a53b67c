package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/store/wal"
)

// Names in a data directory.
const (
	treeName = "tree.db"
	walName  = "wal"
)

// defaultReserve is the size of the log's reserve: enough for the frames of many deletes.
const defaultReserve = 4 << 20

// restartGrace is what a lease gets on top of its TTL after a restart (etcd:
// one election timeout).
const restartGrace = time.Second

// firstTerm is the term of a new store's first start (etcd's).
const firstTerm = 2

// Open opens the store in a directory, or makes a new one in an empty one, and recovers
// what was durable.
//
// ErrInUse, ErrForeign and ErrDamaged are returned as their texts say; then nothing
// was changed.
func Open(opts Options) (*Store, error) {
	opts = opts.withDefaults()
	s := &Store{opts: opts, log: opts.Logger}
	s.failure.ch = make(chan struct{})
	s.hub.init(s)
	s.pins.freed = s.unpinned
	s.leases.init()
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	s.leases.start(s.expire)
	return s, nil
}

func (s *Store) open() error {
	start := time.Now()
	fresh, err := s.inspect()
	if err != nil {
		return err
	}
	if err := s.opts.FS.MkdirAll(s.opts.Dir); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if s.lock, err = vfs.Lock(s.opts.Dir); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			return fmt.Errorf("%w: %w", ErrInUse, err)
		}
		return fmt.Errorf("lock data directory: %w", err)
	}
	meta, adopted, err := s.openTree(fresh)
	if err != nil {
		return err
	}
	r := &recovery{s: s, meta: meta, adopted: adopted, leases: make(map[int64]*lease)}
	if err := r.run(); err != nil {
		return err
	}
	s.log.Info("store opened", "dir", s.opts.Dir, "id", s.ID(), "revision", s.head.revision, "compacted", s.head.compacted,
		"keys", s.keys(), "leases", s.leases.count(), "replayed_frames", r.frames, "took", time.Since(start))
	return nil
}

// inspect looks at the directory before anything is made in it, and reports whether
// it holds no store yet.
func (s *Store) inspect() (fresh bool, err error) {
	dir := s.opts.Dir
	names, err := s.opts.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read data directory: %w", err)
	}
	fresh = !slices.Contains(names, treeName)
	if !fresh {
		return false, nil
	}
	if s.opts.ExpectID != "" {
		return false, fmt.Errorf("%w: %s holds no store, but store %s is expected there; is its file system mounted? To begin with an empty store, take the expected store out of the configuration", ErrForeign, dir, s.opts.ExpectID)
	}
	if slices.Contains(names, "member") {
		return false, fmt.Errorf("%w: %s is a data directory of etcd; use an empty directory", ErrForeign, dir)
	}
	segments, err := s.opts.FS.List(filepath.Join(dir, walName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read data directory: %w", err)
	}
	if slices.ContainsFunc(segments, func(n string) bool { return filepath.Ext(n) == ".wal" }) {
		return false, damage(fmt.Errorf("%s has a log but no %s", dir, treeName))
	}
	return true, nil
}

// openTree also reports whether the file had no store's identity yet and got one: it is
// new, or etcd's.
func (s *Store) openTree(fresh bool) (meta tree.Meta, adopted bool, err error) {
	s.tree, err = tree.Open(tree.Options{FS: s.opts.FS, Path: filepath.Join(s.opts.Dir, treeName), Logger: s.log, ObserveCommit: s.opts.ObserveCheckpoint})
	if err != nil {
		switch {
		case errors.Is(err, tree.ErrDamaged):
			err = damage(err)
		case errors.Is(err, tree.ErrForeign):
			err = fmt.Errorf("%w: %w; use another directory", ErrForeign, err)
		}
		return meta, false, err
	}
	if meta, err = s.tree.Meta(); err != nil {
		return meta, false, damage(err)
	}
	s.id = meta.StoreID
	if want := s.opts.ExpectID; want != "" && want != hex.EncodeToString(s.id[:]) {
		return meta, false, fmt.Errorf("%w: %s holds store %s, but store %s is expected there; mount the right file system, or correct the configuration", ErrForeign, s.opts.Dir, s.ID(), want)
	}
	if adopted = s.id == [16]byte{}; adopted {
		// A new file, or one of etcd's: it becomes this store's.
		rand.Read(s.id[:])
		if err := s.tree.Apply(&tree.Batch{StoreID: &s.id}); err != nil {
			return meta, false, fmt.Errorf("make store: %w", err)
		}
		s.log.Info("store created", "dir", s.opts.Dir, "id", s.ID(), "empty", fresh)
	}
	return meta, adopted, nil
}

// recovery rebuilds the memory of a store from its files.
type recovery struct {
	s       *Store
	meta    tree.Meta
	adopted bool // the tree is new to this store, and has no log
	leases  map[int64]*lease
	frames  int
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
}

func (r *recovery) loadTree() error {
	s := r.s
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
	v := s.tree.View()
	defer v.Close()
	var bad error
	err = v.Scan(Revision{}, func(rev Revision, dead bool, value []byte) bool {
		key, rec, err := recordOf(rev, dead, value)
		if err != nil {
			bad = err
			return false
		}
		// etcd's restore marks a bumped revision by a record without a key.
		if key != "" {
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
	if err != nil {
		return "", record{}, fmt.Errorf("record %d/%d: %w", rev.Main, rev.Sub, err)
	}
	rec = record{main: rev.Main, sub: int32(rev.Sub), size: int32(len(value))}
	if !dead {
		rec.create, rec.version, rec.lease = kv.Create, max(1, kv.Version), kv.Lease
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
	key, rec, err := recordOf(rev, dead, value)
	if err != nil {
		return err
	}
	if rev.Main < s.head.revision || rev.Main > s.head.revision+1 {
		return fmt.Errorf("revision %d follows revision %d", rev.Main, s.head.revision)
	}
	s.mem.append(key, rec, value)
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
	rev := s.head.compacted
	s.compact.finished = r.meta.FinishedCompact
	leftover := s.mem.changes.len() > 0 && s.mem.changes.at(0).main < rev
	if rev > r.meta.FinishedCompact || leftover {
		s.compact.mu.Lock()
		s.compact.queue = append(s.compact.queue, rev)
		s.runCompactor()
		s.compact.mu.Unlock()
	}
}
