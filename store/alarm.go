package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// AlarmType is the kind of an alarm, with etcd's numbers.
type AlarmType int32

const (
	// NoSpace refuses puts and lease grants.
	NoSpace AlarmType = 1
	// Corrupt refuses all writes of keys and leases.
	Corrupt AlarmType = 2
)

// Alarm is an active alarm.
type Alarm struct {
	MemberID uint64
	Type     AlarmType
}

// alarmState is written to the log: its numbers are fixed.
type alarmState byte

const (
	alarmOff alarmState = 0
	alarmOn  alarmState = 1 // set by a person: it stays until it is cleared by one
	alarmOwn alarmState = 2 // raised by the store: it clears it when there is room
)

// alarms are the active alarms of the head. They are changed under Store.mu; mu
// guards the memory.
type alarms struct {
	mu     sync.Mutex
	active map[Alarm]alarmState
	// forQuota is set after the store raised its own alarm because of the quota.
	// Guarded by Store.mu.
	forQuota bool
}

func (a *alarms) set(x Alarm, to alarmState) (was alarmState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was = a.active[x]
	switch {
	case to == alarmOff:
		delete(a.active, x)
	case a.active == nil:
		a.active = map[Alarm]alarmState{x: to}
	default:
		a.active[x] = to
	}
	return was
}

// own returns the alarm that the store raised itself.
func (a *alarms) own() (x Alarm, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for x, state := range a.active {
		if state == alarmOwn {
			return x, true
		}
	}
	return Alarm{}, false
}

func (a *alarms) has(t AlarmType) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for x := range a.active {
		if x.Type == t {
			return true
		}
	}
	return false
}

// setAlarm applies an alarm's change to the head and reports whether it was on.
// One that is on stays as it is. Store.mu is held.
func (s *Store) setAlarm(b *batch, x Alarm, to alarmState) (was bool) {
	before := s.alarms.set(x, to)
	switch {
	case before == to:
	case before != alarmOff && to != alarmOff:
		s.alarms.set(x, before)
	default:
		b.control(control{kind: recordAlarm, a: int64(x.Type), b: int64(x.MemberID), state: to})
		b.undo = append(b.undo, func() { s.alarms.set(x, before) })
	}
	return before != alarmOff
}

// Alarms returns the active alarms, in order. It looks at the room in the file system
// first, at most once a second, and raises or clears the store's own alarm by what it finds.
func (s *Store) Alarms() []Alarm {
	s.lookAtRoom()
	s.alarms.mu.Lock()
	defer s.alarms.mu.Unlock()
	var all []Alarm
	for x := range s.alarms.active {
		all = append(all, x)
	}
	slices.SortFunc(all, func(x, y Alarm) int {
		return cmp.Or(cmp.Compare(x.MemberID, y.MemberID), cmp.Compare(x.Type, y.Type))
	})
	return all
}

// AlarmActivate raises an alarm; one that is on already stays on. It stays until
// AlarmDeactivate, also over a restart.
func (s *Store) AlarmActivate(ctx context.Context, x Alarm) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.submit(func(b *batch) error {
		s.setAlarm(b, x, alarmOn)
		return nil
	})
}

// AlarmDeactivate clears an alarm and reports whether it was on.
func (s *Store) AlarmDeactivate(ctx context.Context, x Alarm) (was bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = s.submit(func(b *batch) error {
		was = s.setAlarm(b, x, alarmOff)
		return nil
	})
	return was, err
}
