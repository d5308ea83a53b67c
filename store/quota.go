package store

import (
	"sync"
	"time"
)

// Costs of writes against the quota in bytes, as etcd counts them.
const (
	putCost   = 256 // and key and value
	leaseCost = 64
)

// PutCost is what a put counts against the quota in bytes.
func PutCost(key, value []byte) int64 { return putCost + int64(len(key)+len(value)) }

// Full reports whether a write of that cost in bytes would be refused for lack
// of room.
func (s *Store) Full(cost int64) bool { return s.full(cost) }

// space watches the room that is left in the file system.
type space struct {
	mu      sync.Mutex
	checked time.Time
	low     bool
	// written is the cost of the writes admitted since the last look.
	written int64
	// reserveUsed is set after the log's reserve was given up.
	reserveUsed bool
}

// How old a look at the file system may be when a write is admitted, in time and in bytes written.
const (
	spaceCheckAge   = time.Second
	spaceCheckBytes = 512 << 10
)

// checkpointRoom is what a checkpoint needs in the file system beside the room for its records.
const checkpointRoom = 512 << 10

// minFree is the free space in bytes below which puts are refused: room for deletes
// and compactions, and for moving the tail to the tree.
func minFree(total uint64, tail int64) uint64 {
	return min(max(total/50, 32<<20), 256<<20, total/4) + treeRoom(tail)
}

// ReservedRoom is the free space in bytes, of a file system of total bytes, below which a store on it
// with the usual settings refuses puts.
func ReservedRoom(total uint64) uint64 { return minFree(total, defaultCheckpointBytes) }

// treeRoom is about what the tree needs in the file system to take in records of
// that many bytes: they, pages that are not full, and copies of the pages that change.
func treeRoom(records int64) uint64 { return uint64(records) * 3 / 2 }

// isLow reports whether the file system is nearly full. cost is that of the write
// that asks.
func (f *space) isLow(s *Store, cost int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written += cost
	if t := now(); t.Sub(f.checked) >= spaceCheckAge || f.written >= spaceCheckBytes {
		f.checked, f.written = t, 0
		u, err := s.opts.FS.Usage(s.opts.Dir)
		if err != nil {
			s.log.Debug("free space of the data directory is not known", "dir", s.opts.Dir, "error", err)
			return f.low
		}
		need := minFree(u.Total, s.mem.tailBytes.Load())
		if f.low {
			need += need / 4 // not on and off at the border
		}
		f.low = u.Free < need
	}
	return f.low
}

// useReserve gives up the log's reserve once, to let deletes through on a full disk.
func (f *space) useReserve(s *Store) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reserveUsed {
		return false
	}
	f.reserveUsed, f.low, f.checked = true, true, now()
	if err := s.wal.UseReserve(); err != nil {
		s.log.Warn("the reserve of the log could not be given up", "error", err)
		return false
	}
	s.log.Warn("the file system of the data directory is full: the log's reserve was given up; delete keys and compact, or make room", "dir", s.opts.Dir)
	return true
}

// hasRoom reports whether the file system has that many bytes for the tree to grow
// by. A checkpoint is not begun without: what it writes before it fails would
// take the room from the log.
func (f *space) hasRoom(s *Store, need uint64) bool {
	u, err := s.opts.FS.Usage(s.opts.Dir)
	return err != nil || u.Free > need+checkpointRoom
}

// restoreReserve makes the reserve again once there is room.
func (f *space) restoreReserve(s *Store) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.reserveUsed || f.low {
		return
	}
	if err := s.wal.RestoreReserve(); err != nil {
		s.log.Warn("the reserve of the log could not be restored", "error", err)
		return
	}
	f.reserveUsed = false
}

// inUse is what counts against the quota: pages of the tree that hold data, and the
// tail that will go there.
func (s *Store) inUse() int64 { return s.tree.InUse() + s.mem.tailBytes.Load() }

// admit refuses a transaction that the alarms or the quota do not allow. Store.mu
// is held.
func (s *Store) admit(b *batch, req *TxnRequest) error {
	if s.alarms.has(Corrupt) {
		return ErrCorrupt
	}
	if cost := req.Cost(); cost > 0 {
		return s.admitCost(b, cost)
	}
	return nil
}

// admitDelete refuses a write that only frees space while the store is marked
// corrupt.
func (s *Store) admitDelete() error {
	if s.alarms.has(Corrupt) {
		return ErrCorrupt
	}
	return nil
}

// admitCost refuses a write of that many bytes if there is no room for it, and raises
// the alarm.
func (s *Store) admitCost(b *batch, cost int64) error {
	if s.alarms.has(Corrupt) {
		return ErrCorrupt
	}
	if s.alarms.has(NoSpace) {
		own, ok := s.alarms.own()
		if !ok || s.full(0) {
			return ErrNoSpace
		}
		s.clearOwnAlarm(b, own)
	}
	if cost > 0 && s.full(cost) {
		s.raiseOwnAlarm(b)
		return ErrNoSpace
	}
	return nil
}

// full reports whether a write of that many bytes is too much. With an alarm on
// there must be some room more than that, so that it does not go on and off.
func (s *Store) full(cost int64) bool {
	if s.space.isLow(s, cost) {
		return true
	}
	if s.opts.Quota < 0 {
		return false
	}
	limit := s.opts.Quota
	if _, on := s.alarms.own(); on {
		limit -= limit / 20
	}
	return s.inUse()+cost >= limit
}

// lookAtRoom raises the store's own alarm if others have filled the file system, and clears
// it when there is room, so that who asks how the store is need not wait for a write to
// find out. A quota is used up by writes alone: they raise the alarm for it, and a
// write that was too large says nothing about a smaller one, so it is left to them.
//
// The alarm that it raises is in memory only. A full file system is no time to write, and
// the next look after a restart finds the same.
func (s *Store) lookAtRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped() != nil {
		return
	}
	if own, on := s.alarms.own(); on {
		if !s.alarms.forQuota && !s.full(0) {
			s.rideOn(func(b *batch) { s.clearOwnAlarm(b, own) })
		}
		return
	}
	if s.space.isLow(s, 0) && !s.alarms.has(NoSpace) && !s.alarms.has(Corrupt) {
		s.alarms.set(s.ownAlarm(), alarmOwn)
		s.sayRaised(true)
	}
}

func (s *Store) ownAlarm() Alarm { return Alarm{MemberID: s.memberID.Load(), Type: NoSpace} }

func (s *Store) raiseOwnAlarm(b *batch) {
	s.setAlarm(b, s.ownAlarm(), alarmOwn)
	s.sayRaised(s.space.isLow(s, 0))
}

// sayRaised notes and logs why the store's own alarm is on.
func (s *Store) sayRaised(low bool) {
	s.alarms.forQuota = !low
	s.log.Warn("NOSPACE alarm raised: puts are refused until there is room; delete keys and compact, raise --quota-backend-bytes, or make room in the file system",
		"in_use", s.inUse(), "quota", s.opts.Quota, "file_system_low", low, "largest", s.largestPrefixes())
}

func (s *Store) clearOwnAlarm(b *batch, own Alarm) {
	s.setAlarm(b, own, alarmOff)
	s.log.Info("NOSPACE alarm cleared: there is room again", "in_use", s.inUse(), "quota", s.opts.Quota)
}

// clearAlarmIfRoom clears the store's own alarm after space was freed.
func (s *Store) clearAlarmIfRoom() {
	if s.closed.Load() {
		return
	}
	s.space.restoreReserve(s)
	if _, on := s.alarms.own(); !on {
		return
	}
	err := s.submit(func(b *batch) error {
		if own, on := s.alarms.own(); on && !s.full(0) {
			s.clearOwnAlarm(b, own)
		}
		return nil
	})
	if err != nil {
		s.log.Debug("NOSPACE alarm not cleared", "error", err)
	}
}

// Cost is what a transaction counts against the quota in bytes: the larger of its branches.
func (t *TxnRequest) Cost() int64 { return max(opsCost(t.Success), opsCost(t.Failure)) }

func opsCost(ops []Op) (n int64) {
	for i := range ops {
		switch op := &ops[i]; {
		case op.Put != nil:
			n += PutCost(op.Put.Key, op.Put.Value)
		case op.Txn != nil:
			n += op.Txn.Cost()
		}
	}
	return n
}
