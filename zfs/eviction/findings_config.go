package eviction

import (
	"fmt"
	"slices"
	"strings"
)

// files is about what somebody wrote and what does not count.
func (q *inquiry) files() {
	byFlag := map[string][]string{}
	var flags []string
	for _, l := range q.config.Lost {
		flag := l.Map + " by " + orText(l.By.Source, "a flag")
		if byFlag[flag] == nil {
			flags = append(flags, flag)
		}
		byFlag[flag] = append(byFlag[flag], fmt.Sprintf("%s: %s in %s", l.Key, l.Setting.Value, orText(l.Setting.Source, l.Setting.Origin)))
	}
	for _, flag := range flags {
		q.add(Warning, FindingFlagOverFiles, flag, "A flag replaces what files say: "+flag+".",
			"A flag is read last and replaces the whole map. Lost are "+strings.Join(byFlag[flag], "; ")+".",
			"Remove the flag and write its values into the file"+q.orConfig(", or leave both to tarn kubelet config")+".")
	}
	for _, f := range q.config.Ignored {
		switch f.Reason {
		case IgnoredSuffix:
			q.add(Warning, FindingFileIgnored, f.Path, f.Path+" is not read.",
				"The kubelet reads only files of this directory whose names end in .conf, and says nothing of others.",
				"Rename it to end in .conf, or remove it.")
		case IgnoredNoHeader:
			q.add(Critical, FindingFileBroken, f.Path, "The kubelet does not start with "+f.Path+".",
				"apiVersion or kind are missing in it.",
				"Begin it with apiVersion: kubelet.config.k8s.io/v1beta1 and kind: KubeletConfiguration.")
		default:
			q.add(Critical, FindingFileBroken, f.Path, "The kubelet does not start with "+f.Path+".", f.Reason, "Mend or remove the file.")
		}
	}
	for _, k := range q.config.Unknown {
		why := "The kubelet logs a line at its start and goes on without it."
		if k.DropIn {
			why = "In a drop-in the kubelet ignores what it does not know, and says nothing."
		}
		fix := "Remove it."
		if k.Meant != "" {
			fix = "Write " + k.Meant + "."
		}
		q.add(Warning, FindingUnknownKey, k.Path, fmt.Sprintf("%s has the key %s, which does not exist.", k.Path, k.Key), why, fix)
	}
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// from tells people where a setting comes from.
func from(s Setting) string {
	if s.Source != "" {
		return " (" + s.Source + ")"
	}
	return ""
}

// orConfig is advice to use tarn kubelet config, which replaces values only where something is on ZFS:
// elsewhere it adds what is missing.
func (q *inquiry) orConfig(advice string) string {
	if len(q.onZFS()) == 0 {
		return ""
	}
	return advice
}

const writeBytes = "Write it in bytes: tarn kubelet config proposes values."

// values is about single settings.
func (q *inquiry) values() {
	for _, b := range q.bad {
		q.add(Critical, FindingInvalid, b.key,
			fmt.Sprintf("The kubelet does not start with %s: %s%s.", b.name(" "), b.setting.Value, from(b.setting)),
			b.err.Error()+".", "Mend or remove it.")
	}
	for key, s := range sorted(q.config.MinimumReclaim) {
		if strings.HasSuffix(s.Value, "%") && q.isDisk(key) && q.wrong(key) {
			q.add(Warning, FindingPercentReclaim, key,
				fmt.Sprintf("evictionMinimumReclaim has %s: %s%s.", key, s.Value, from(s)),
				fmt.Sprintf("That is %s of a wrong capacity, which the kubelet wants free on top of the threshold before pressure ends.",
					FormatBytes(q.share(key, s.Value))), writeBytes)
		}
	}
	_, hasMemory := q.config.Hard[MemoryAvailable]
	_, hasSoftMemory := q.config.Soft[MemoryAvailable]
	if !hasMemory && !hasSoftMemory {
		q.add(Warning, FindingNoMemory, MemoryAvailable, "There is no threshold for memory.",
			"The built-in one counts only where nothing sets evictionHard, and k3s sets it without one for memory: the kernel kills processes before the kubelet acts.",
			"Set memory.available to 100Mi or more; tarn kubelet config does.")
	}
	for _, m := range []map[string]Setting{q.config.Hard, q.config.Soft} {
		for key, s := range sorted(m) {
			if strings.HasPrefix(key, "containerfs.") && s.Value != "0%" && s.Value != "100%" {
				q.add(Warning, FindingContainerFS, key, fmt.Sprintf("%s: %s%s has no effect.", key, s.Value, from(s)),
					"The kubelet replaces it by a copy of the one of imagefs or nodefs after its first pass, and logs \"found conflicting containerfs eviction. Ignoring.\"",
					"Remove it, or set it to 0%.")
			}
		}
	}
}

func (q *inquiry) isDisk(signal string) bool { return isDiskBytes(signal) || isInodes(signal) }

// wrong tells whether the capacity behind a signal is one that the kubelet gets wrong.
func (q *inquiry) wrong(signal string) bool {
	view, _ := q.report.of(signal, &q.Facts)
	return view.grows && isDiskBytes(signal)
}

// share is what a percentage comes to now.
func (q *inquiry) share(signal, value string) uint64 {
	view, _ := q.report.of(signal, &q.Facts)
	a, err := parseAmount(value)
	if err != nil || view.Capacity == nil {
		return 0
	}
	return uint64(max(0, a.of(int64(*view.Capacity))))
}

// signals is about each threshold in force.
func (q *inquiry) signals() {
	for _, name := range []string{NodeFSAvailable, ImageFSAvailable} {
		there := slices.ContainsFunc(q.thresholds, func(t threshold) bool { return t.signal == name && !t.off && !t.empty && !t.derived })
		single := name == ImageFSAvailable && !q.report.DedicatedImageFS
		if !there && !single {
			q.noThreshold(name)
		}
	}
	seen := observations(q.report.NodeFS, q.report.ImageFS)
	for _, t := range q.thresholds {
		if t.off || t.empty || t.derived || !q.isDisk(t.signal) {
			continue
		}
		if isInodes(t.signal) {
			q.inodes(&t, seen[t.signal])
			continue
		}
		q.percent(&t)
		q.level(&t, seen[t.signal])
	}
}

func (q *inquiry) noThreshold(name string) {
	why := "The disk fills up until writes fail, and nothing is evicted before."
	id := FindingNoDisk
	if len(q.config.Hard) == 0 && !q.config.ConfigFile {
		id, why = FindingNoDefaults, "The built-in thresholds count only where the kubelet gets a file with --config; here it gets none. "+why
	} else if len(q.config.Hard) > 0 {
		why = "Where evictionHard is set at all, the built-in thresholds that it does not name are gone. " + why
	}
	q.add(Critical, id, name, "There is no threshold for "+name+".", why, "Set one in bytes; tarn kubelet config does.")
}

func (q *inquiry) percent(t *threshold) {
	if !t.value.percent || !q.wrong(t.signal) {
		return
	}
	view, fs := q.report.of(t.signal, &q.Facts)
	counted, real := FormatBytes(q.share(t.signal, t.setting.Value)), FormatBytes(uint64(max(0, t.value.of(int64(view.Real)))))
	what := fmt.Sprintf("%s: %s%s is %s and not %s.", t.signal, t.setting.Value, from(t.setting), counted, real)
	why := fmt.Sprintf("The kubelet counts the percentage of %s, and %s has %s. The threshold also moves as datasets and snapshots grow.",
		FormatBytes(*view.Capacity), fs.Source, FormatBytes(view.Real))
	if counted == real {
		what = fmt.Sprintf("%s: %s%s is right now (%s), and will not stay so.", t.signal, t.setting.Value, from(t.setting), real)
		why = fmt.Sprintf("The kubelet counts the percentage of a sum in which the data of %s are twice, and with them snapshots and datasets below it: "+
			"the threshold rises as they grow.", fs.Source)
	}
	q.add(Warning, FindingPercent, t.signal, what, why, writeBytes)
}

// level is about thresholds that fire now or soon.
func (q *inquiry) level(t *threshold, o *observation) {
	if o == nil {
		return
	}
	value, available := uint64(max(0, t.value.of(o.capacity))), uint64(max(0, o.available))
	view, _ := q.report.of(t.signal, &q.Facts)
	switch {
	case t.met(o):
		why := "The node has DiskPressure: images are removed, then pods are evicted one after the other, and no new ones are let in."
		if t.soft {
			why = fmt.Sprintf("The node has DiskPressure, and pods are evicted once it lasts for %s.", t.grace)
		}
		fix := "Make room on the disk."
		if t.value.percent && uint64(max(0, t.value.of(int64(view.Real)))) <= available {
			why += " There is enough room; the threshold counts from a wrong capacity."
			fix = writeBytes
		}
		q.add(Critical, FindingMet, t.signal,
			fmt.Sprintf("%s: %s%s is met: it fires below %s, and %s are available.", t.signal, t.setting.Value, from(t.setting), FormatBytes(value), FormatBytes(available)), why, fix)
	case 2*value >= available:
		q.add(Warning, FindingTooHigh, t.signal,
			fmt.Sprintf("%s: %s%s fires below %s, and no more than %s are available.", t.signal, t.setting.Value, from(t.setting), FormatBytes(value), FormatBytes(available)),
			"One large image or one busy pod is enough to reach it.", "Lower it, make room or raise the quota.")
	}
	if t.reclaim != nil && !t.met(o) {
		if reclaim := uint64(max(0, t.reclaim.of(o.capacity))); value+reclaim >= available {
			fix := "Lower evictionMinimumReclaim, or make room." + q.orConfig(" tarn kubelet config proposes values.")
			q.add(Warning, FindingMinimumTooLarge, t.signal,
				fmt.Sprintf("Once %s has fired, pressure ends only with %s available, and there are no more than %s now.", t.signal, FormatBytes(value+reclaim), FormatBytes(available)),
				"evictionMinimumReclaim is on top of the threshold: pods would be evicted until there is more room than ever.", fix)
		}
	}
}

// inodesOff is the advice for thresholds of inodes that mean nothing.
const inodesOff = "Set it to 0%, which also wins over a file below; tarn kubelet config does."

func (q *inquiry) inodes(t *threshold, o *observation) {
	_, fs := q.report.of(t.signal, &q.Facts)
	set := fmt.Sprintf("%s: %s%s", t.signal, t.setting.Value, from(t.setting))
	const off = inodesOff
	switch {
	case t.met(o) && !fs.OnZFS() && fs.Statfs.Inodes > 0:
		q.add(Critical, FindingInodes, t.signal, set+" is met: the node has DiskPressure and pods are evicted.",
			fmt.Sprintf("%s has %d of %d inodes free.", orUnknown(fs.Source), o.available, o.capacity),
			"Remove what is made of many small files, or give it a file system with more inodes (df -i shows them).")
	case t.met(o):
		q.add(Critical, FindingInodes, t.signal, set+" is met: the node has DiskPressure and pods are evicted.",
			fmt.Sprintf("%s has no number of inodes that means anything.", orUnknown(fs.Source)), off)
	case !fs.OnZFS():
		return
	case o == nil:
		q.add(Warning, FindingInodes, t.signal, set+" does nothing but fill the log.",
			"This kubelet knows no inodes of a dataset and says so in each pass.", off)
	case !t.value.percent:
		q.add(Warning, FindingInodes, t.signal, set+" evicts pods as soon as a kubelet or a file system reports no inodes.",
			"ZFS makes inodes of free bytes, so it says nothing that a threshold in bytes does not.", off)
	default:
		q.add(Notice, FindingInodes, t.signal, set+" is useless.",
			"ZFS makes inodes of free bytes: the threshold in bytes always fires first. From 1.36.1 on it fills the log.", off)
	}
}
