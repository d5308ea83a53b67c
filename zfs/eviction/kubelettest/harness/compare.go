package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// RunNode runs the kubelet's code on what it would see of a node.
func RunNode(ctx context.Context, n eviction.Node, r *eviction.Report) (*Outcome, error) {
	return RunConfig(ctx, n.Config, FS(r.NodeFS.Stats), FS(r.ImageFS.Stats), r.DedicatedImageFS)
}

// RunConfig is Run with a configuration of package eviction.
func RunConfig(ctx context.Context, c *eviction.Config, node, image FS, dedicated bool) (*Outcome, error) {
	s := Settings{values(c.Hard), values(c.Soft), values(c.SoftGracePeriod), values(c.MinimumReclaim)}
	return Run(ctx, s, node, image, dedicated)
}

func values(m map[string]eviction.Setting) map[string]string {
	v := map[string]string{}
	for k, s := range m {
		v[k] = s.Value
	}
	return v
}

// Differences are what a report foretells and the kubelet's code did not do. failed is
// the error of Run.
func Differences(n eviction.Node, r *eviction.Report, o *Outcome, failed error) (list []string) {
	differ := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if (r.StartError != "") != (failed != nil) {
		differ("starting: foretold is %q, and it was %v", r.StartError, failed)
	}
	if failed != nil || r.StartError != "" {
		return list
	}
	if want, got := foretold(r), actual(o); !slices.Equal(want, got) {
		differ("thresholds: foretold are %v, and they were %v", want, got)
	}
	met := slices.ContainsFunc(r.Signals, func(s eviction.Signal) bool { return s.Met && s.Name != eviction.MemoryAvailable })
	if met != o.DiskPressure && !firstPass(n.Config) {
		differ("disk pressure: foretold is %t, and it was %t", met, o.DiskPressure)
	}
	lines := map[string]int{}
	for _, l := range r.Lines {
		lines[l.Signal] += l.Times
	}
	if !o.DiskPressure && !maps.Equal(lines, o.Lines) {
		differ("lines: foretold are %v, and they were %v", lines, o.Lines)
	}
	// Under pressure the kubelet looks once more after it has removed images.
	for signal, times := range lines {
		if o.DiskPressure && o.Lines[signal] != times && o.Lines[signal] != 2*times {
			differ("lines under pressure for %s: foretold are %d, and they were %d", signal, times, o.Lines[signal])
		}
	}
	if !o.DiskPressure && len(o.Others) > 0 {
		differ("other lines: %q", o.Others)
	}
	return list
}

// firstPass tells whether thresholds for containerfs are configured: they count in the
// first pass only, and the condition that they set stays for minutes.
func firstPass(c *eviction.Config) bool {
	for _, m := range []map[string]eviction.Setting{c.Hard, c.Soft} {
		for signal := range m {
			if strings.HasPrefix(signal, "containerfs.") {
				return true
			}
		}
	}
	return false
}

// foretold are the thresholds in a report that have numbers. What a kubelet compares
// with what is comparable in both.
func foretold(r *eviction.Report) (list []string) {
	for _, s := range r.Signals {
		if s.Name != eviction.MemoryAvailable && !s.Off && s.Threshold != nil && s.Available != nil {
			list = append(list, fmt.Sprintf("%s soft=%t %d", s.Name, s.Soft, *s.Threshold))
		}
	}
	slices.SortFunc(list, cmp.Compare[string])
	return list
}

func actual(o *Outcome) (list []string) {
	for _, t := range o.Thresholds {
		if !t.Empty && t.Known {
			list = append(list, fmt.Sprintf("%s soft=%t %d", t.Signal, t.Soft, max(0, t.Quantity)))
		}
	}
	slices.SortFunc(list, cmp.Compare[string])
	return list
}
