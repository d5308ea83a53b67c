package main

import (
	"context"
	"fmt"
)

const (
	startSize = 256
	startTail = 500 // updates before the crash, to be read from the log
)

// startMany starts the server on many keys: after it has ended, and after kill -9.
func startMany(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	keys := newKeyset("/registry/pods/", pick(t, 100_000, 20_000))
	if err := keys.fill(t.ctx, t.kv(2), startSize); err != nil {
		return err
	}
	t.measure(fmt.Sprintf("%d keys", len(keys.names)), func(set setter) error {
		return startCase(t, keys, set, t.restart)
	})
	if t.server == nil {
		return fmt.Errorf("the server is not there for the next case")
	}
	kvs := t.kv(2)
	_, err := times(t.ctx, lone, startTail, func(ctx context.Context, w, i int) error {
		return keys.update(ctx, kvs[w%len(kvs)], i, newValue(startSize), 0)
	})
	if err != nil {
		return err
	}
	t.measure("after kill -9", func(set setter) error {
		if err := startCase(t, keys, set, t.crash); err != nil {
			return err
		}
		head, err := headRevision(t.ctx, t.kv(1)[0])
		if err == nil && head < keys.newest() {
			err = fmt.Errorf("revision %d was acknowledged, and the newest is %d", keys.newest(), head)
		}
		return err
	})
	return nil
}

func startCase(t *turn, keys *keyset, set setter, again func() error) error {
	if err := again(); err != nil {
		return err
	}
	set("ms to the first answer", millis(t.server.ready))
	cpu, err := cpuTime(t.server.pid)
	if err != nil {
		return err
	}
	set("CPU ms", millis(cpu))
	status, err := readFields(procPath(t.server.pid, "status"))
	if err != nil {
		return err
	}
	set("resident MB", float64(status["VmRSS"]<<10)/mega)
	n, err := countKeys(t.ctx, t.kv(1)[0], keys.prefix)
	if err == nil && n != int64(len(keys.names)) {
		err = fmt.Errorf("%d of %d keys are there", n, len(keys.names))
	}
	return err
}
