package main

import (
	"fmt"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// figures count what a history holds.
type figures struct {
	requests, failed          int // of all requests
	watches, events, progress int
}

func (h *history) figures() (f figures) {
	for _, c := range h.clients {
		for _, op := range c.KeyValue {
			f.requests++
			if op.Output.(model.MaybeEtcdResponse).Error != "" {
				f.failed++
			}
		}
		for _, w := range c.Watch {
			f.watches++
			for _, r := range w.Responses {
				f.events += len(r.Events)
				if r.IsProgressNotify {
					f.progress++
				}
			}
		}
	}
	return f
}

func (f *figures) add(g figures) {
	f.requests += g.requests
	f.failed += g.failed
	f.watches += g.watches
	f.events += g.events
	f.progress += g.progress
}

func (f figures) String() string {
	return fmt.Sprintf("%d requests (%d without an answer), %d watches with %d events and %d progress messages",
		f.requests, f.failed, f.watches, f.events, f.progress)
}
