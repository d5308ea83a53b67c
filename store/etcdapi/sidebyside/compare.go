package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// results is what -json writes.
type results struct {
	Begun     time.Time           `json:"begun"`
	CPUs      int                 `json:"cpus"`
	Go        string              `json:"go"`
	Quick     bool                `json:"quick"`
	Commands  map[string][]string `json:"commands"` // by server
	Workloads []*outcome          `json:"workloads"`
}

// compare runs the workloads and prints a table after each. It returns whether no
// server failed.
func compare(ctx context.Context, o settings, out io.Writer) (good bool, err error) {
	work, err := os.MkdirTemp(o.dir, "sidebyside")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	servers, err := chooseServers(o, work)
	if err != nil {
		return false, err
	}
	if inMemory, err := syncsNothing(work); err != nil {
		return false, err
	} else if inMemory {
		fmt.Fprintf(out, "note: %s is in memory, where a sync costs nothing; use -dir for a directory on a disk\n", work)
	}
	r := &results{Begun: time.Now(), CPUs: runtime.NumCPU(), Go: runtime.Version(), Quick: o.quick, Commands: map[string][]string{}}
	for _, s := range servers {
		r.Commands[s.name] = s.command
	}
	good = true
	for _, w := range o.workloads {
		result, err := runWorkload(ctx, w, servers, o, work)
		if err != nil {
			return false, err
		}
		r.Workloads = append(r.Workloads, result)
		if err := result.print(out); err != nil {
			return false, err
		}
		good = good && !result.failed()
	}
	fmt.Fprintf(out, "\n%d workloads in %v. Medians of %d rounds; figures in \"/s\" are better when higher, all others when lower.\n",
		len(o.workloads), time.Since(r.Begun).Round(time.Second), o.rounds)
	if o.json == "" {
		return good, nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return false, err
	}
	return good, os.WriteFile(o.json, append(text, '\n'), 0o644)
}

// chooseServers returns etcd, tarn, the further ones, and the floor.
func chooseServers(o settings, work string) ([]serverSpec, error) {
	saves := slices.ContainsFunc(o.workloads, func(w workload) bool { return w.saves })
	servers, err := defaultServers(work, saves)
	if err != nil {
		return nil, err
	}
	servers = append(servers, o.further...)
	if !o.floors {
		return servers, nil
	}
	floor, err := floorSpec(listKeys, listSize)
	return append(servers, floor), err
}

// runWorkload has the servers take turns, round after round.
func runWorkload(ctx context.Context, w workload, servers []serverSpec, o settings, work string) (*outcome, error) {
	result := &outcome{Workload: w.name, About: w.about}
	for round := 1; round <= o.rounds; round++ {
		for _, spec := range servers {
			if spec.floor && !w.floor {
				continue
			}
			if round == 1 {
				result.Servers = append(result.Servers, spec.name)
			}
			state, err := runTurn(ctx, w, spec, work, o.quick)
			if err == nil {
				err = ctx.Err() // what an interrupted turn measured is worth nothing
			}
			if err != nil {
				return nil, err
			}
			state.Round = round
			result.Turns = append(result.Turns, state)
		}
	}
	return result, nil
}

func runTurn(ctx context.Context, w workload, spec serverSpec, work string, quick bool) (turnState, error) {
	state := turnState{Server: spec.name}
	if err := settle(work); err != nil {
		return state, err
	}
	var err error
	if state.Yardstick, err = takeYardstick(work); err != nil {
		return state, err
	}
	dir := filepath.Join(work, "data")
	begun := time.Now()
	t := take(ctx, w, spec, dir, quick)
	state.Seconds = time.Since(begun).Seconds()
	state.Figures, state.Failures = t.figures, t.failures
	return state, os.RemoveAll(dir)
}
