package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// page is the report for a person.
func (r kubeletCheckReport) page() string {
	var b strings.Builder
	r.head(&b)
	if r.Examined != nil {
		r.fileSystems(&b)
	}
	switch {
	case r.Judged:
		r.signals(&b)
		r.rest(&b)
	case r.Config != nil:
		writeConfigured(&b, r.Config, r.Partial)
	}
	for _, n := range r.Unseen {
		about := n.File
		if about != "" {
			about += ": "
		}
		fmt.Fprintf(&b, "UNKNOWN   %s%s\n", about, n.Text)
		if n.Fix != "" {
			fmt.Fprintf(&b, "          -> %s\n", n.Fix)
		}
	}
	for _, f := range r.Findings {
		writeFinding(&b, f)
	}
	b.WriteString(r.tally() + "\n")
	return b.String()
}

func (r kubeletCheckReport) head(b *strings.Builder) {
	layout := map[string]string{
		eviction.LayoutK3s: "in k3s", eviction.LayoutK3sRootless: "in a rootless k3s", eviction.LayoutKubelet: "a service of its own", "": "not recognised",
	}[r.Layout]
	version := "version not known"
	if r.Version.Known() {
		version = fmt.Sprintf("%s (%s)", r.Version, r.VersionFrom)
	}
	fmt.Fprintf(b, "kubelet   %s, %s\n", layout, version)
	if r.ConfigFile != "" {
		fmt.Fprintf(b, "file      %s\n", r.ConfigFile)
	}
	if r.ConfigDir != "" {
		fmt.Fprintf(b, "drop-ins  %s\n", r.ConfigDir)
	}
	if r.Node != "" {
		fmt.Fprintf(b, "node      %s, asked\n", r.Node)
	}
}

func (r kubeletCheckReport) fileSystems(b *strings.Builder) {
	if r.Facts.NodeFS.OnZFS() || r.Facts.ImageFS.OnZFS() {
		fmt.Fprintf(b, "on ZFS    %s\n", r.Examined.Behaviour.Note)
	} else {
		b.WriteString("on ZFS    nothing: what is said here about ZFS does not matter on this machine\n")
	}
	for _, part := range []struct {
		name string
		fs   *eviction.FS
		view eviction.View
	}{{"nodefs", &r.Facts.NodeFS, r.Examined.NodeFS}, {"imagefs", &r.Facts.ImageFS, r.Examined.ImageFS}} {
		missing := ""
		if part.fs.Missing {
			missing = ", which is yet to be made"
		}
		fmt.Fprintf(b, "%-9s %s%s, on %s (%s)\n", part.name, part.fs.Path, missing, part.fs.Source, part.fs.Type)
		fmt.Fprintf(b, "          %s\n", viewText(part.fs, part.view))
	}
}

// worthSaying is from where on a wrong size is told: below it is what changes while one looks.
const worthSaying = 1.01

// viewText is the size of a file system, and what the kubelet takes it for.
func viewText(fs *eviction.FS, v eviction.View) string {
	if v.Problem != "" {
		return "the kubelet sees nothing of it: " + v.Problem
	}
	available := fs.Statfs.Available
	if v.Available != nil {
		available = *v.Available
	}
	text := fmt.Sprintf("%s of %s free", eviction.FormatBytes(available), eviction.FormatBytes(v.Real))
	if v.Capacity == nil {
		return text
	}
	if v.Inflation > worthSaying {
		text += fmt.Sprintf("; the kubelet takes it for %s, %.3g times as much", eviction.FormatBytes(*v.Capacity), v.Inflation)
	} else {
		text += "; the kubelet sees the same"
	}
	if v.Inodes == nil {
		text += ", and no inodes"
	}
	return text
}

func (r kubeletCheckReport) signals(b *strings.Builder) {
	if len(r.Examined.Signals) == 0 {
		b.WriteString("\nno thresholds\n")
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SIGNAL\tCONFIGURED\tCOMPUTED\tFIRES AT\tNOW\tFROM")
	for _, s := range r.Examined.Signals {
		name := s.Name
		if s.Soft {
			name += " (soft)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", name, configuredText(s), computedText(s), firesText(s), nowText(s), r.fromText(s))
	}
	w.Flush()
	b.WriteString("\n")
}

// writeConfigured lists what is configured, where nothing can be worked out of it.
func writeConfigured(b *strings.Builder, c *eviction.Config, partial bool) {
	b.WriteString("\n")
	if partial {
		b.WriteString("as far as the files can be read, so that something else may hold:\n")
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tCONFIGURED\tFROM")
	for _, part := range []struct {
		name string
		has  map[string]eviction.Setting
	}{{"evictionHard", c.Hard}, {"evictionSoft", c.Soft}, {"evictionMinimumReclaim", c.MinimumReclaim}} {
		for _, signal := range slices.Sorted(maps.Keys(part.has)) {
			s := part.has[signal]
			fmt.Fprintf(w, "%s %s\t%s\t%s\n", part.name, signal, s.Value, firstText(s.Source, s.Origin))
		}
	}
	w.Flush()
	b.WriteString("\n")
}

func isInodeSignal(name string) bool { return strings.HasSuffix(name, ".inodesFree") }

// amountText is a number of what a signal counts.
func amountText(name string, n *uint64) string {
	switch {
	case n == nil:
		return "-"
	case isInodeSignal(name), strings.HasPrefix(name, "pid."):
		return fmt.Sprint(*n)
	}
	return eviction.FormatBytes(*n)
}

func configuredText(s eviction.Signal) string {
	switch {
	case s.Setting.Value == "":
		return "-"
	case s.Reclaim > 0:
		return s.Setting.Value + ", +" + eviction.FormatBytes(s.Reclaim)
	}
	return s.Setting.Value
}

func computedText(s eviction.Signal) string {
	if s.Off {
		return "off"
	}
	return amountText(s.Name, s.Threshold)
}

func firesText(s eviction.Signal) string {
	switch {
	case s.Off:
		return "never"
	case s.Available == nil && strings.Contains(s.Name, "fs."):
		return "never: nothing known"
	case s.FiresAt != nil:
		return eviction.FormatBytes(*s.FiresAt) + " free"
	}
	return amountText(s.Name, s.Threshold)
}

func nowText(s eviction.Signal) string {
	text := amountText(s.Name, s.Available)
	if s.Met {
		text += ": FIRES"
	}
	return text
}

func (r kubeletCheckReport) fromText(s eviction.Signal) string {
	if !s.Derived {
		return firstText(s.Setting.Source, s.Setting.Origin, "-")
	}
	source := "nodefs"
	if r.Examined.DedicatedImageFS {
		source = "imagefs"
	}
	return "the kubelet's copy of " + strings.Replace(s.Name, "containerfs", source, 1)
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func (r kubeletCheckReport) rest(b *strings.Builder) {
	if gc := r.Examined.ImageGC; gc.UsedPercent >= 0 {
		does := "removes no images now"
		switch {
		case gc.Never:
			does = "images go by age alone"
		case gc.Runs:
			does = "removes unused images now"
		}
		fmt.Fprintf(b, "image GC  starts at %d%% used; the kubelet counts %d%%, really %d%%: %s\n", gc.HighPercent, gc.UsedPercent, gc.RealPercent, does)
	}
	if r.Examined.StartError != "" {
		fmt.Fprintf(b, "start     the kubelet does not start: %s\n", r.Examined.StartError)
	}
	for _, line := range r.Examined.Lines {
		fmt.Fprintf(b, "log       %d every 10 s: %s\n", line.Times, line.Text)
	}
	b.WriteString("\n")
}

func writeFinding(b *strings.Builder, f eviction.Finding) {
	severity := strings.ToUpper(f.Severity)
	if f.Severity == eviction.Notice {
		severity = f.Severity
	}
	fmt.Fprintf(b, "%-9s %s\n", severity, f.What)
	if f.Why != "" {
		fmt.Fprintf(b, "          %s\n", f.Why)
	}
	if f.Fix != "" {
		fmt.Fprintf(b, "          -> %s\n", f.Fix)
	}
}

// tally is the last line.
func (r kubeletCheckReport) tally() string {
	var parts []string
	for _, n := range []struct {
		count     int
		one, more string
	}{{r.Critical, "critical", "critical"}, {r.Warnings, "warning", "warnings"}, {len(r.Unseen), "could not be looked at", "could not be looked at"}} {
		switch {
		case n.count == 1:
			parts = append(parts, "1 "+n.one)
		case n.count > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n.count, n.more))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}
