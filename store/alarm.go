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

// alarms are the active alarms of the head. They are changed under Store.mu; mu
// guards the memory.
type alarms struct {
	mu     sync.Mutex
	active map[Alarm]struct{}
	// own is the alarm that the store raised itself: it is cleared again when
	// there is room. One that a person has set stays.
	own Alarm
}

func (a *alarms) set(x Alarm, on bool) (was bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, was = a.active[x]
	switch {
	case on && a.active == nil:
		a.active = map[Alarm]struct{}{x: {}}
	case on:
		a.active[x] = struct{}{}
	default:
		delete(a.active, x)
	}
	return was
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
// Store.mu is held.
func (s *Store) setAlarm(b *batch, x Alarm, on bool) (was bool) {
	if was = s.alarms.set(x, on); was != on {
		b.control(control{kind: recordAlarm, a: int64(x.Type), b: int64(x.MemberID), on: on})
		b.undo = append(b.undo, func() { s.alarms.set(x, was) })
	}
	return was
}

// Alarms returns the active alarms, in order.
func (s *Store) Alarms() []Alarm {
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
		s.setAlarm(b, x, true)
		return nil
	})
}

// AlarmDeactivate clears an alarm and reports whether it was on.
func (s *Store) AlarmDeactivate(ctx context.Context, x Alarm) (was bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = s.submit(func(b *batch) error {
		was = s.setAlarm(b, x, false)
		return nil
	})
	return was, err
}
