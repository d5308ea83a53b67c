package main

import (
	"fmt"
	"slices"
	"time"
)

const (
	fanOutKeys    = 100
	fanOutSize    = 1024
	fanOutConns   = 10 // kube-apiserver has one for each watch
	fanOutWriters = 4
)

// audience is a number of watches, and how much is written for them.
type audience struct {
	watches   int
	perSecond int // changes, in a steady pace
	burst     int // changes as fast as possible
}

// fanOut writes to keys that 10, and then 1,000 watches want.
func fanOut(t *turn) error {
	for _, a := range []audience{{10, 200, 2000}, {1000, 10, 100}} {
		if err := fanOutTo(t, a); err != nil {
			return err
		}
	}
	return nil
}

func fanOutTo(t *turn, a audience) error {
	if err := t.restart(); err != nil {
		return err
	}
	keys := newKeyset(fmt.Sprintf("/registry/fanout-%d/", a.watches), fanOutKeys)
	if err := keys.fill(t.ctx, t.kv(1), fanOutSize); err != nil {
		return err
	}
	f := &fan{turn: t, keys: keys, watches: newWatches(t.ctx), ages: make([][]time.Duration, a.watches)}
	for i := range f.ages {
		took := &f.ages[i]
		_, err := f.watches.open(t.server.conn(1+i%fanOutConns), keys.prefix, keys.newest()+1, func(_, value []byte) {
			*took = append(*took, valueAge(value))
		})
		if err != nil {
			return err
		}
	}
	if err := f.watches.created(); err != nil {
		return err
	}
	t.measure(fmt.Sprintf("%d watches, %d changes/s", a.watches, a.perSecond), func(set setter) error {
		return f.paced(a.perSecond, set)
	})
	t.measure(fmt.Sprintf("%d watches, full speed", a.watches), func(set setter) error {
		return f.fullSpeed(pick(t, a.burst, a.burst/4), set)
	})
	return f.watches.close()
}

// fan is the keys, and the watches of them.
type fan struct {
	*turn
	keys    *keyset
	watches *watches
	changes int               // so far
	ages    [][]time.Duration // by watch: how old each value was when it arrived
}

func (f *fan) paced(perSecond int, set setter) error {
	u, err := f.using(func() error {
		s := startSteady(f.ctx, float64(perSecond), f.keys.updates(f.kv(1), steadyWorkers, fanOutSize))
		waited := pause(f.ctx, pick(f.turn, 2*time.Second, time.Second))
		l, err := s.stop()
		if err == nil {
			err = waited
		}
		f.changes += len(l.samples)
		if err != nil {
			return err
		}
		return f.watches.await(f.changes)
	})
	if err != nil {
		return err
	}
	// Every event has been counted after its age was noted.
	took := slices.Concat(f.ages...)
	set("delivered p50 ms", quantile(took, 0.5))
	set("delivered p99 ms", quantile(took, 0.99))
	set("CPU µs per delivery", u.cpuMilli(len(took))*1000)
	return nil
}

func (f *fan) fullSpeed(changes int, set setter) error {
	u, err := f.using(func() error {
		_, err := times(f.ctx, fanOutWriters, changes, f.keys.updates(f.kv(1), fanOutWriters, fanOutSize))
		f.changes += changes
		if err != nil {
			return err
		}
		return f.watches.await(f.changes)
	})
	if err != nil {
		return err
	}
	deliveries := changes * len(f.ages)
	set("deliveries/s", float64(deliveries)/u.wall.Seconds())
	set("CPU µs per delivery", u.cpuMilli(deliveries)*1000)
	set("peak resident MB", float64(u.resident)/mega)
	return nil
}
