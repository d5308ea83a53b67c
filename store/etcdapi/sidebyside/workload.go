package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// workload is something that each server does in its turn.
type workload struct {
	name  string
	about string
	floor bool // the floor takes part
	saves bool // needs the commands that save the data; takes long, so it is done only when it is named
	run   func(t *turn) error
	// limit ends a turn that hangs; 0 for turnTimeout.
	limit time.Duration
}

var workloads = []workload{
	{name: "idle", about: "an idle Kubernetes cluster in real time: 30 pods, 62 watches, progress every 5 s", run: idle},
	{name: "put", about: "updates as kube-apiserver makes them (if unchanged put, else get), values of 1 KiB", floor: true, run: put},
	{name: "list", about: "lists of 10,000 keys of 1 KiB; storms of 50 at once", floor: true, run: list},
	{name: "fanout", about: "each change goes to 10 and to 1,000 watches, on streams of their own", run: fanOut},
	{name: "catchup", about: "watches that begin at the start of a long history", run: catchUp},
	{name: "compact", about: "a compaction, with 100 updates a second going on", run: compact},
	{name: "delete", about: "one call deletes many keys that are watched, with 100 updates a second going on", run: deleteMany},
	{name: "start", about: "from the start of the process to the first answer, with many keys", run: startMany},
	{name: "leases", about: "leases with a key each that end at the same time, with 100 updates a second going on", run: leases},
	{name: "snapshot", about: "1 GB is saved, with 100 updates a second going on", run: snapshot, saves: true, limit: snapshotTime},
}

// chooseWorkloads returns the workloads that a comma-separated list names, if it
// is empty all that do not take long.
func chooseWorkloads(names string) ([]workload, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(workloads), func(w workload) bool { return w.saves }), nil
	}
	var chosen []workload
	for name := range strings.SplitSeq(names, ",") {
		n := len(chosen)
		for _, w := range workloads {
			if w.name == name {
				chosen = append(chosen, w)
			}
		}
		if len(chosen) == n {
			return nil, fmt.Errorf("there is no workload %q: choose from %s", name, workloadNames())
		}
	}
	return chosen, nil
}

func workloadNames() string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w.name
	}
	return strings.Join(names, ",")
}
