package eviction

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs"
)

// order is about two thresholds of one pool that fire in the wrong order.
func (q *inquiry) order() {
	node, image := &q.Facts.NodeFS, &q.Facts.ImageFS
	if !q.report.DedicatedImageFS || !sharesRoom(node, image) {
		return
	}
	lowest := func(signal string) (at uint64, ok bool) {
		for _, s := range q.report.Signals {
			if s.Name == signal && !s.Soft && !s.Off && s.FiresAt != nil {
				return *s.FiresAt, true
			}
		}
		return 0, false
	}
	nodeAt, hasNode := lowest(NodeFSAvailable)
	imageAt, hasImage := lowest(ImageFSAvailable)
	if !hasNode || hasImage && imageAt > nodeAt {
		return
	}
	at := FormatBytes(nodeAt)
	what := "nodefs.available fires first, at " + at + " free, and there is no threshold for imagefs.available."
	switch {
	case hasImage && FormatBytes(imageAt) == at:
		what = "nodefs.available and imagefs.available fire together, at " + at + " free."
	case hasImage:
		what = "nodefs.available fires first, at " + at + " free, and imagefs.available only at " + FormatBytes(imageAt) + "."
	}
	q.add(Warning, FindingNodeFSFirst, NodeFSAvailable, what,
		fmt.Sprintf("%s and %s share the pool %s, and the kubelet takes them for two disks: for nodefs it removes no images but evicts pods at once.",
			node.Source, image.Source, zfs.PoolOf(node.Source)),
		"Set imagefs.available clearly above nodefs.available, in bytes; tarn kubelet config does.")
}

// logLines is about lines that no configuration removes.
func (q *inquiry) logLines() {
	perPass := 0
	var stay []string
	for _, l := range q.report.Lines {
		perPass += l.Times
		if l.Signal == ContainerFSInodes {
			stay = append(stay, fmt.Sprintf("%d for %s", l.Times, l.Signal))
		}
	}
	if perPass == 0 || q.report.EvictionError != "" {
		return
	}
	fix := "tarn kubelet config takes away those that can go."
	if len(stay) > 0 {
		fix = fmt.Sprintf("No configuration takes away %s. A filter of journald can, with systemd 253 or later; tarn kubelet config offers one.",
			strings.Join(stay, " and "))
		if perPass > 2 {
			fix = "tarn kubelet config takes away the others. " + fix
		}
	}
	q.add(Notice, FindingLogLines, "", fmt.Sprintf("The kubelet logs \"no observation found for eviction signal\" %d times every 10 seconds.", perPass),
		"It knows no inodes of a dataset, and looks for thresholds of containerfs that it makes for itself. The lines do no harm: nothing is evicted for them.", fix)
}

func (q *inquiry) imageGC() {
	gc := q.report.ImageGC
	if !gc.Runs || !q.report.ImageFS.grows || gc.RealPercent >= gc.HighPercent {
		return
	}
	fix := "tarn kubelet config"
	if q.report.Plan != nil && q.report.Plan.ImageGC != nil {
		fix += " sets imageGCHighThresholdPercent to 100 and lets age decide"
	}
	q.add(Warning, FindingImageGC, q.Facts.ImageFS.Path,
		fmt.Sprintf("The kubelet removes unused images every 5 minutes: it counts %d%% of the disk as used, where %d%% are.", gc.UsedPercent, gc.RealPercent),
		fmt.Sprintf("It starts at %d%% and wants to free %s, which images do not have: they are pulled again and again, with events FreeDiskSpaceFailed.",
			gc.HighPercent, FormatBytes(gc.ToFree)),
		fix+". Better still, give containerd a dataset of its own, with nothing below it.")
}

// live compares with what the running kubelet says.
func (q *inquiry) live() {
	l := q.Live
	if l == nil {
		return
	}
	restart := "Restart " + q.unit() + ": the kubelet reads its configuration only when it starts."
	if q.Config != nil {
		for _, m := range []struct {
			name          string
			running, file map[string]string
		}{
			{"evictionHard", l.Hard, valuesOf(q.config.Hard)},
			{"evictionMinimumReclaim", l.MinimumReclaim, valuesOf(q.config.MinimumReclaim)},
		} {
			if m.running != nil && !maps.Equal(m.running, m.file) {
				q.add(Warning, FindingLiveDiffers, m.name, "The running kubelet has another "+m.name+" than its files and flags.",
					fmt.Sprintf("It has %s; configured is %s.", listOf(m.running), listOf(m.file)), restart)
			}
		}
	}
	if l.Summary {
		for _, s := range []struct {
			name string
			of   *Stats
		}{{"nodefs", l.NodeFS}, {"imagefs", l.ImageFS}} {
			if s.of == nil || s.of.Available == nil || s.of.Capacity == nil {
				q.add(Critical, FindingLiveBlind, s.name, "The running kubelet knows nothing of "+s.name+".",
					"It does not say how much is available there, so it evicts nothing.",
					"Look for late mounts and for zfs in its PATH, and restart "+q.unit()+".")
			}
		}
	}
	if l.DiskPressure {
		q.add(Critical, FindingLivePressure, "", "The node has the condition DiskPressure.",
			"No new pods are let in, and running ones are evicted. The condition lasts for 5 minutes after there is room again.",
			"See which threshold is met, above; make room or mend the threshold.")
	}
}

func valuesOf(m map[string]Setting) map[string]string {
	values := map[string]string{}
	for k, s := range m {
		values[k] = s.Value
	}
	return values
}

func listOf(m map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+" "+m[k])
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
