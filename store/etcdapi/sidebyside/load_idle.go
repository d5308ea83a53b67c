package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	idleConns     = 69
	idleResources = 62
	idleWarmUp    = 3 * time.Second
	idlePods      = 30
	podSize       = 4096
	otherObjects  = 5 // of every other resource
	otherSize     = 1024
)

// idle replays what an idle cluster asks for (cluster.go), in real time: wake-ups can
// not be sped up.
func idle(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	c, err := newCluster(t)
	if err != nil {
		return err
	}
	t.measure(fmt.Sprintf("%d pods", idlePods), func(set setter) error { return idleCase(t, c, set) })
	return c.watches.close()
}

func idleCase(t *turn, c *cluster, set setter) error {
	ctx, stop := context.WithCancelCause(t.ctx)
	defer stop(nil)
	errDone := errors.New("the time is over")
	wait := c.begin(ctx, stop)
	err := pause(ctx, idleWarmUp)
	var u usage
	if err == nil {
		c.writes.forget()
		u, err = t.using(func() error { return pause(ctx, pick(t, 15*time.Second, 8*time.Second)) })
	}
	stop(errDone) // activities end what they have begun
	wait()
	if cause := context.Cause(ctx); cause != errDone {
		return cause
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	seconds := u.wall.Seconds()
	set("% of a core", u.cpu.Seconds()/seconds*100)
	set("wake-ups per s", float64(u.sleeps)/seconds)
	set("written KB per s", float64(u.written)/1024/seconds)
	set("peak resident MB", float64(u.resident)/mega)
	set("peak heap and stacks MB", float64(u.private)/mega)
	set("write p50 ms", quantile(c.writes.all(), 0.5))
	return nil
}
