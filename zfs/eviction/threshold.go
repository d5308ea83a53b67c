package eviction

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Signals of disks, as they are written in a configuration.
const (
	MemoryAvailable      = "memory.available"
	NodeFSAvailable      = "nodefs.available"
	NodeFSInodes         = "nodefs.inodesFree"
	ImageFSAvailable     = "imagefs.available"
	ImageFSInodes        = "imagefs.inodesFree"
	ContainerFSAvailable = "containerfs.available"
	ContainerFSInodes    = "containerfs.inodesFree"
)

// signalNames are all that the kubelet takes, in the order in which they are shown.
var signalNames = []string{
	MemoryAvailable, "allocatableMemory.available", "pid.available",
	NodeFSAvailable, NodeFSInodes, ImageFSAvailable, ImageFSInodes, ContainerFSAvailable, ContainerFSInodes,
}

func isInodes(signal string) bool {
	return signal == NodeFSInodes || signal == ImageFSInodes || signal == ContainerFSInodes
}

// isDiskBytes tells whether a signal is about the free bytes of a disk.
func isDiskBytes(signal string) bool {
	return signal == NodeFSAvailable || signal == ImageFSAvailable || signal == ContainerFSAvailable
}

// DefaultHard are the thresholds that are built into the kubelet. They count only
// where it gets a file with --config that has no evictionHard.
func DefaultHard() map[string]Setting {
	return settings(OriginDefault, "built into the kubelet", map[string]string{
		MemoryAvailable: "100Mi", NodeFSAvailable: "10%", NodeFSInodes: "5%", ImageFSAvailable: "15%", ImageFSInodes: "5%",
	})
}

func settings(origin, source string, values map[string]string) map[string]Setting {
	m := map[string]Setting{}
	for k, v := range values {
		m[k] = Setting{Value: v, Origin: origin, Source: source}
	}
	return m
}

// threshold is one that the kubelet has after reading its configuration.
type threshold struct {
	signal  string
	soft    bool // with a period of grace; without one, evictionSoft is as hard as evictionHard
	setting Setting
	value   amount
	reclaim *amount
	grace   time.Duration
	derived bool
	// empty is a derived one with nothing to derive it from: it is looked up in each
	// pass and never met.
	empty bool
	// off is one that the kubelet has dropped.
	off bool
}

// invalid is a value with which the kubelet does not start.
type invalid struct {
	in, key string // in is "" for what is in no map
	setting Setting
	err     error
}

func (b invalid) name(separator string) string {
	if b.in == "" {
		return b.key
	}
	return b.in + separator + b.key
}

// thresholds reads the configuration as the kubelet does. Those that it drops, which
// are 0% and 100%, are there with off set.
func (c *Config) thresholds() (all []threshold, bad []invalid) {
	reject := func(in, key string, s Setting, err error) { bad = append(bad, invalid{in, key, s, err}) }
	reclaims := map[string]*amount{}
	for key, s := range sorted(c.MinimumReclaim) {
		if a, err := parseReclaim(key, s.Value); err != nil {
			reject("evictionMinimumReclaim", key, s, err)
		} else {
			reclaims[key] = &a
		}
	}
	for key, s := range sorted(c.Hard) {
		t, err := parseThreshold(key, s)
		if err != nil {
			reject("evictionHard", key, s, err)
			continue
		}
		all = append(all, t)
	}
	for key, s := range sorted(c.Soft) {
		t, err := parseThreshold(key, s)
		if err == nil && !t.off {
			t.grace, err = parseGrace(c.SoftGracePeriod[key])
		}
		if err != nil {
			reject("evictionSoft", key, s, err)
			continue
		}
		t.soft = t.grace > 0
		all = append(all, t)
	}
	for i := range all {
		all[i].reclaim = reclaims[all[i].signal]
	}
	return all, bad
}

// sorted goes through a map in the order of signalNames, unknown ones last.
func sorted(m map[string]Setting) func(yield func(string, Setting) bool) {
	place := func(key string) int {
		if i := slices.Index(signalNames, key); i >= 0 {
			return i
		}
		return len(signalNames)
	}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	return func(yield func(string, Setting) bool) {
		for _, key := range keys {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

func parseThreshold(signal string, s Setting) (threshold, error) {
	t := threshold{signal: signal, setting: s}
	if !slices.Contains(signalNames, signal) {
		return t, fmt.Errorf("there is no signal %s", signal)
	}
	if s.Value == "0%" || s.Value == "100%" {
		t.off = true
		return t, nil
	}
	var err error
	t.value, err = parseAmount(s.Value)
	switch {
	case err != nil:
		return t, err
	case t.value.percent && (t.value.share < 0 || t.value.share > 1):
		return t, fmt.Errorf("%s is not between 0%% and 100%%", s.Value)
	case !t.value.percent && t.value.number <= 0:
		return t, fmt.Errorf("%s is not more than 0; 0%% switches a threshold off", s.Value)
	}
	return t, nil
}

func parseReclaim(signal, value string) (amount, error) {
	if !slices.Contains(signalNames, signal) {
		return amount{}, fmt.Errorf("there is no signal %s", signal)
	}
	a, err := parseAmount(value)
	switch {
	case err != nil:
		return a, err
	case a.percent && a.share <= 0:
		return a, fmt.Errorf("%s is not more than 0%%; write 0Mi for none", value)
	case a.number < 0:
		return a, fmt.Errorf("%s is less than 0", value)
	}
	return a, nil
}

func parseGrace(s Setting) (time.Duration, error) {
	if s.Value == "" {
		return 0, fmt.Errorf("evictionSoftGracePeriod has no period for it")
	}
	d, err := time.ParseDuration(s.Value)
	if err == nil && d < 0 {
		err = fmt.Errorf("the period %s is less than 0", s.Value)
	}
	return d, err
}

// withContainerFS replaces the thresholds of containerfs by what the kubelet makes of
// them in its first pass: a hard and a soft copy of those of imagefs or nodefs. A copy
// of nothing is there as well, and empty.
func withContainerFS(given []threshold, dedicated bool) []threshold {
	from := map[string]string{ContainerFSAvailable: NodeFSAvailable, ContainerFSInodes: NodeFSInodes}
	if dedicated {
		from = map[string]string{ContainerFSAvailable: ImageFSAvailable, ContainerFSInodes: ImageFSInodes}
	}
	var all []threshold
	for i, t := range given {
		// Of two for the same signal, as with one in evictionSoft without a period, only
		// the last is replaced.
		_, derived := from[t.signal]
		again := slices.ContainsFunc(given[i+1:], func(o threshold) bool { return o.signal == t.signal && o.soft == t.soft && !o.off })
		if !t.off && (!derived || again) {
			all = append(all, t)
		}
	}
	for _, signal := range []string{ContainerFSAvailable, ContainerFSInodes} {
		for _, soft := range []bool{false, true} {
			copied := threshold{empty: true}
			for _, t := range given {
				if t.signal == from[signal] && !t.off && t.soft == soft {
					copied = t
				}
			}
			copied.signal, copied.soft, copied.derived = signal, soft, true
			all = append(all, copied)
		}
	}
	return all
}
