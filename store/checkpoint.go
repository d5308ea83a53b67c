package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// checkpointer moves what is durable in the log into the tree.
type checkpointer struct {
	// mu is held by whoever writes the tree: a checkpoint, a compaction, a
	// defragmentation.
	mu      sync.Mutex
	treeRev int64 // newest revision in the tree; guarded by mu
	// owesSpace is set when free pages could not be given back yet. Guarded by mu.
	owesSpace bool
	// moves counts checkpoints, for readers that walk from the tree into the tail.
	moves atomic.Uint64

	// due guards what has been published since the last checkpoint.
	due      sync.Mutex
	rev      int64
	seq      uint64
	treeSeq  uint64
	controls []control
	timer    *time.Timer
	running  bool
	stopped  bool
}

// checkpointRetry is the pause after a checkpoint for which there was no space.
const checkpointRetry = 10 * time.Second

// note takes over a published batch. The timer is set by the first one.
func (c *checkpointer) note(s *Store, rev int64, seq uint64, controls []control) {
	c.due.Lock()
	defer c.due.Unlock()
	c.rev, c.seq = rev, seq
	c.controls = append(c.controls, controls...)
	if c.timer == nil && !c.stopped {
		c.timer = time.AfterFunc(s.opts.CheckpointAge, s.backgroundCheckpoint)
	}
	if s.mem.tailBytes.Load() >= s.opts.CheckpointBytes && !c.running && !c.stopped {
		c.running = true
		go s.backgroundCheckpoint()
	}
}

func (c *checkpointer) stop() {
	c.due.Lock()
	defer c.due.Unlock()
	c.stopped = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// take returns what is to be moved and starts a new account.
func (c *checkpointer) take() (rev int64, seq uint64, controls []control) {
	c.due.Lock()
	defer c.due.Unlock()
	rev, seq, controls = c.rev, c.seq, c.controls
	c.controls = nil
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return rev, seq, controls
}

// putBack is called when a checkpoint has failed: what was taken is still due.
func (c *checkpointer) putBack(s *Store, controls []control) {
	c.due.Lock()
	defer c.due.Unlock()
	c.controls = append(controls, c.controls...)
	if c.timer == nil && !c.stopped {
		c.timer = time.AfterFunc(checkpointRetry, s.backgroundCheckpoint)
	}
}

func (s *Store) backgroundCheckpoint() {
	if err := s.Checkpoint(context.Background()); err != nil {
		s.log.Warn("checkpoint failed; the log keeps what it holds, and another is tried", "error", err)
	}
	s.ckpt.due.Lock()
	s.ckpt.running = false
	s.ckpt.due.Unlock()
	s.giveBackOwed()
	s.clearAlarmIfRoom()
}

// Checkpoint moves everything that is published into the tree and lets go of the
// log's segments. Reads and writes go on meanwhile.
func (s *Store) Checkpoint(ctx context.Context) error {
	s.ckpt.mu.Lock()
	defer s.ckpt.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.checkpointLocked()
}

func (s *Store) checkpointLocked() error { return s.commitTree(nil, -1, false) }

// commitTree moves what is published into the tree and removes records that a compaction
// has taken from memory, in one transaction. Apart they would leave, for a
// moment, a tree that has lost records and does not say yet that it is compacted, or has a
// key's old record and its new one, but not those between. finished is a compaction that this
// ends, or -1; more is set if another step of it follows. ckpt.mu is held.
func (s *Store) commitTree(dead []tree.DeadRecord, finished int64, more bool) error {
	c := &s.ckpt
	rev, seq, controls := c.take()
	dead = append(s.compact.lost, dead...)
	if seq == c.treeSeq && len(dead) == 0 && finished < 0 {
		return nil
	}
	start := time.Now()
	slices.SortFunc(dead, func(x, y tree.DeadRecord) int { return x.Rev.Compare(y.Rev) })
	b := &tree.Batch{Put: s.tailRecords(rev), Delete: dead, More: more, Seq: &seq}
	if err := s.roomFor(b); err != nil {
		c.putBack(s, controls)
		s.compact.lost = dead
		return err
	}
	addControls(b, controls)
	if finished >= 0 {
		b.FinishedCompact = &finished
	}
	if err := s.tree.Apply(b); err != nil {
		c.putBack(s, controls)
		s.compact.lost = dead
		if vfs.IsNoSpace(err) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		} else {
			s.fail(err)
		}
		return fmt.Errorf("checkpoint at revision %d: %w", rev, err)
	}
	c.treeSeq = seq
	c.treeRev = max(c.treeRev, rev)
	s.compact.lost = nil
	s.mem.mu.Lock()
	s.mem.dropTail(rev)
	c.moves.Add(1) // under the lock, so that a walk that misses the tail's records knows
	s.mem.mu.Unlock()
	atomic.AddUint64(&s.count.Checkpoints, 1)
	if err := s.wal.TrimBefore(seq); err != nil {
		s.log.Warn("old segments of the log could not be removed; they are tried again with the next checkpoint", "error", err)
	}
	s.warnOfGrowth()
	s.log.Debug("checkpoint", "revision", rev, "seq", seq, "records", len(b.Put), "removed", len(dead), "took", time.Since(start))
	return nil
}

// roomFor refuses a checkpoint that would fill the file system. One that also
// removes records is tried all the same: it is the way out.
func (s *Store) roomFor(b *tree.Batch) error {
	if len(b.Delete) > 0 {
		return nil
	}
	var bytes int64
	for i := range b.Put {
		bytes += int64(len(b.Put[i].Value))
	}
	need := treeRoom(bytes)
	if free := s.tree.Size() - s.tree.InUse(); free > int64(need) {
		need = min(need, uint64(s.tree.Holes())) // free pages may be holes, which take room again
	}
	if need == 0 || s.space.hasRoom(s, need) {
		return nil
	}
	return fmt.Errorf("%w: the file system of %s has no room for the %d bytes of a checkpoint: they stay in the log; delete keys and compact, or make room", ErrNoSpace, s.opts.Dir, bytes)
}

// tailRecords collects the records of the tail up to rev, without those that a
// compaction has removed already.
func (s *Store) tailRecords(rev int64) []tree.Record {
	m := &s.mem
	var out []tree.Record
	for from := 0; ; {
		m.mu.RLock()
		n := min(m.tail.len(), from+scanStep)
		for ; from < n; from++ {
			t := m.tail.at(from)
			if t.main > rev {
				n = 0
				break
			}
			if r := t.entry.find(t.main, t.sub); r != nil {
				out = append(out, tree.Record{Rev: r.rev(), Tombstone: r.tombstone(), Value: t.value})
			}
		}
		end := from >= m.tail.len() || n == 0
		m.mu.RUnlock()
		if end {
			return out
		}
	}
}

// addControls adds the outcome of a sequence of controls: the last one of each
// lease or alarm counts.
func addControls(b *tree.Batch, controls []control) {
	granted := make(map[int64]*control)
	alarm := make(map[Alarm]alarmState)
	var leaseOrder []int64
	for i := range controls {
		switch c := &controls[i]; c.kind {
		case recordGrant, recordRevoke:
			if granted[c.a] == nil {
				leaseOrder = append(leaseOrder, c.a)
			}
			granted[c.a] = c
		case recordCompact:
			rev := c.a
			b.ScheduledCompact = &rev
		case recordAlarm:
			alarm[Alarm{MemberID: uint64(c.b), Type: AlarmType(c.a)}] = c.state
		case recordBoot:
			term := c.a
			b.Term = &term
		case recordAuth:
			addAuth(b, c.auth)
		}
	}
	for _, id := range leaseOrder {
		if c := granted[id]; c.kind == recordGrant {
			b.LeasePut = append(b.LeasePut, tree.LeaseRecord{ID: id, TTL: c.b})
		} else {
			b.LeaseDelete = append(b.LeaseDelete, id)
		}
	}
	for x, state := range alarm {
		r := tree.AlarmRecord{MemberID: x.MemberID, Type: int32(x.Type), Own: state == alarmOwn}
		if state != alarmOff {
			b.AlarmPut = append(b.AlarmPut, r)
		} else {
			b.AlarmDelete = append(b.AlarmDelete, r)
		}
	}
}
