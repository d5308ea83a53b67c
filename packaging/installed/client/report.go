package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// check compares everything that the clients were told with what the server has, and prints it.
func (l *load) check(endWatches func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	defer cancel()
	client, err := l.connect(0)
	if err != nil {
		return err
	}
	history, end, err := readHistory(ctx, client)
	if err != nil {
		return err
	}
	acknowledged, err := readJournal(l.settings.journal)
	if err != nil {
		return err
	}
	lost := checkHistory(history, acknowledged)
	events, watches := l.checkWatches(ctx, history)
	endWatches()

	fmt.Printf("connections: %d made, %d refused, %d failed in another way\n", l.dials.made.Load(), l.dials.refused.Load(), l.dials.failed.Load())
	fmt.Printf("writes: %d acknowledged in this run, %d in all; the history has %d changes up to revision %d\n", l.journal.count, len(acknowledged), len(history), end)
	fmt.Printf("watches: %d, with %d events in all\n", len(l.watches), events)
	fmt.Printf("requests without an answer: %d %v\n", sum(l.cut), l.cut)
	fmt.Println(l.writes)
	fmt.Println(l.reads)
	wrong := append(l.wrong, lost, watches)
	if n := l.dials.refused.Load() + l.dials.failed.Load(); n > 0 {
		wrong = append(wrong, fmt.Errorf("%d connections were refused or failed", n))
	}
	if n := sum(l.cut); n > 0 && l.uncut {
		wrong = append(wrong, fmt.Errorf("%d requests got no answer", n))
	}
	for _, k := range l.knocks {
		fmt.Println(k)
		fmt.Println(k.answers)
		if n := sum(k.failed); n > 0 && !l.killed {
			wrong = append(wrong, fmt.Errorf("%d new connections got no answer: %v", n, k.failed))
		}
	}
	return errors.Join(wrong...)
}

// checkWatches waits until each watch has the last event of its range, and compares.
func (l *load) checkWatches(ctx context.Context, history []event) (events int, err error) {
	for _, w := range l.watches {
		want := below(history, w.prefix, w.from)
		for len(want) > 0 && w.newest() < want[len(want)-1].revision && ctx.Err() == nil {
			pause(ctx, 10*time.Millisecond)
		}
		events += len(w.events)
		err = errors.Join(err, w.check(history))
	}
	return events, err
}
