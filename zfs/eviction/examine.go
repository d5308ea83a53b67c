package eviction

import "strings"

// Examine works out what the kubelet of a node computes, what it logs and what is
// wrong with it. It reads nothing but n.
func Examine(n Node) *Report {
	b := BehaviourOf(n.Version)
	r := &Report{
		Version: n.Version, Behaviour: b,
		NodeFS: b.view(n.Facts.Host, &n.Facts.NodeFS), ImageFS: b.view(n.Facts.Host, &n.Facts.ImageFS),
		DedicatedImageFS: n.Facts.NodeFS.Source != n.Facts.ImageFS.Source,
		Signals:          []Signal{}, Lines: []Line{}, Findings: []Finding{},
	}
	config := n.Config
	if config == nil {
		config = &Config{}
	}
	given, bad := config.thresholds()
	bad = append(bad, config.invalidGC()...)
	switch {
	case len(bad) > 0:
		r.StartError = bad[0].name(", ") + ": " + bad[0].err.Error()
	case r.NodeFS.unsure || r.ImageFS.unsure:
	case r.NodeFS.Problem != "":
		r.StartError = "it finds nothing out about " + n.Facts.NodeFS.Path + ": " + r.NodeFS.Problem
	case r.ImageFS.Problem != "":
		r.EvictionError = "it finds nothing out about " + n.Facts.ImageFS.Path + ": " + r.ImageFS.Problem
	}
	all := withContainerFS(given, r.DedicatedImageFS)
	for _, t := range given {
		if t.off {
			all = append(all, t)
		}
	}
	if n.Config != nil {
		r.Signals = r.signals(all, &n.Facts)
		r.Lines = r.lines(all)
	}
	r.ImageGC = imageGC(config, r.ImageFS)
	plan, err := NewPlan(n)
	if err != nil {
		r.PlanError = err.Error()
	}
	r.Plan = plan
	r.Findings = findings(&inquiry{Node: n, report: r, config: config, thresholds: all, bad: bad})
	return r
}

// of returns the file system that a signal is about.
func (r *Report) of(signal string, f *Facts) (View, *FS) {
	if strings.HasPrefix(signal, "nodefs.") {
		return r.NodeFS, &f.NodeFS
	}
	return r.ImageFS, &f.ImageFS
}

func (r *Report) signals(all []threshold, f *Facts) []Signal {
	list := []Signal{}
	seen := observations(r.NodeFS, r.ImageFS)
	for _, soft := range []bool{false, true} {
		for _, name := range signalNames {
			for _, t := range all {
				if t.signal != name || t.soft != soft || soft && t.empty {
					continue // an empty soft one says nothing that the hard one does not
				}
				list = append(list, r.signal(&t, seen[name], f))
			}
		}
	}
	return list
}

func (r *Report) signal(t *threshold, o *observation, f *Facts) Signal {
	s := Signal{Name: t.signal, Soft: t.soft, Setting: t.setting, Derived: t.derived, Off: t.off || t.empty}
	if isDiskBytes(t.signal) || isInodes(t.signal) {
		s.FiresAt = t.firesAt(r.of(t.signal, f))
	}
	if o != nil {
		s.Available = new(uint64(o.available))
	}
	if s.Off {
		return s
	}
	switch {
	case o != nil:
		s.Threshold = new(uint64(max(0, t.value.of(o.capacity))))
	case !t.value.percent:
		s.Threshold = new(uint64(t.value.number))
	}
	s.Met = t.met(o)
	if t.reclaim != nil && (o != nil || !t.reclaim.percent) {
		capacity := int64(0)
		if o != nil {
			capacity = o.capacity
		}
		s.Reclaim = uint64(max(0, t.reclaim.of(capacity)))
	}
	return s
}

// lines are those of each pass but the first, which is before containerfs gets its
// thresholds.
func (r *Report) lines(all []threshold) []Line {
	switch {
	case r.StartError != "", r.NodeFS.unsure, r.ImageFS.unsure:
		return []Line{}
	case r.EvictionError != "":
		return []Line{
			{Text: `"Eviction manager: failed to get HasDedicatedImageFs"`, Times: 1},
			{Text: `"Eviction manager: failed to synchronize"`, Times: 1},
		}
	}
	times := map[string]int{}
	for signal, o := range observations(r.NodeFS, r.ImageFS) {
		for _, t := range all {
			if t.signal == signal && !t.off && o == nil {
				times[signal]++
			}
		}
	}
	list := []Line{}
	for _, signal := range signalNames {
		if n := times[signal]; n > 0 {
			list = append(list, Line{Signal: signal, Text: noObservation(signal), Times: n})
		}
	}
	return list
}
