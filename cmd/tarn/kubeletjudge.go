package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// judge works out what the kubelet makes of the files, and compares.
func (o *kubeletConfigOptions) judge(ctx context.Context, r *kubeletConfigReport, l *kubeletLook) *eviction.Report {
	changed := o.without(l.node)
	for _, f := range r.Files {
		changed[f.Path] = nil
		if f.Content != "" {
			changed[f.Path] = []byte(f.Content)
		}
	}
	m := o.machine.With(changed)
	m.Run = nil // nothing to ask again
	opts := o.kubeletOptions
	opts.version = l.node.Version.Text
	node, err := opts.readNode(ctx, m)
	if err != nil || len(r.Files) == 0 || len(r.ByHand) > 0 {
		// Of what a person will do, nothing is known yet: as if it were the last of the drop-ins.
		node = l.node
		node.Config = *r.Plan.Over(&l.node.Config, "as shown")
	}
	r.Overridden = append(r.Overridden, overridden(r.Plan, &node.Config)...)
	n := l.evictionNode(node)
	n.Config, n.Live = &node.Config, nil // what runs now is not what will
	after := eviction.Examine(n)
	r.LinesGo, r.LinesStay = compareLines(l.report.Lines, after.Lines)
	for _, f := range after.Findings {
		if f.ID != eviction.FindingLogLines && f.Severity != eviction.Notice {
			r.Remaining = append(r.Remaining, f)
		}
	}
	return after
}

// overridden are planned values that are not in force.
func overridden(p *eviction.Plan, c *eviction.Config) (list []string) {
	for _, part := range []struct {
		name    string
		planned []eviction.Amount
		has     map[string]eviction.Setting
	}{{"evictionHard", p.Hard, c.Hard}, {"evictionSoft", p.Soft, c.Soft}, {"evictionMinimumReclaim", p.MinimumReclaim, c.MinimumReclaim}} {
		for _, a := range part.planned {
			s, set := part.has[a.Signal]
			switch {
			case set && s.Value == a.Value, !set && (a.Value == "0%" || a.Value == "0Mi"):
			case !set:
				list = append(list, fmt.Sprintf("%s has no %s, as a flag replaces it", part.name, a.Signal))
			default:
				list = append(list, fmt.Sprintf("%s has %s: %s from %s", part.name, a.Signal, s.Value, firstText(s.Source, s.Origin)))
			}
		}
	}
	if s := c.ImageGCHighPercent; p.ImageGC != nil && s.Value != strconv.Itoa(p.ImageGC.HighPercent) {
		list = append(list, fmt.Sprintf("imageGCHighThresholdPercent is %s from %s", s.Value, firstText(s.Source, s.Origin)))
	}
	return list
}

// compareLines tells which lines of the log go and which stay.
func compareLines(before, after []eviction.Line) (gone, stay []eviction.Line) {
	gone, stay = []eviction.Line{}, append([]eviction.Line{}, after...)
	for _, b := range before {
		i := slices.IndexFunc(after, func(a eviction.Line) bool { return a.Signal == b.Signal && a.Text == b.Text })
		switch {
		case i < 0:
			gone = append(gone, b)
		case after[i].Times < b.Times:
			b.Times -= after[i].Times
			gone = append(gone, b)
		}
	}
	return gone, stay
}
