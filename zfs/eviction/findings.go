package eviction

import (
	"cmp"
	"slices"
	"strings"
)

// What a Finding is about. The values are stable.
const (
	// The kubelet does not start, or evicts nothing.
	FindingNoPlugin        = "kubelet-without-zfs"
	FindingNoProgram       = "zfs-not-in-path"
	FindingNoAnswer        = "zfs-does-not-answer"
	FindingUnprivileged    = "unprivileged-container"
	FindingInvalid         = "invalid-threshold"
	FindingMountedLate     = "mounted-too-late"
	FindingNotMounted      = "not-mounted"
	FindingMountOrder      = "mount-order"
	FindingVersion         = "version-not-known"
	FindingPool            = "pool-health"
	FindingLiveDiffers     = "running-kubelet-differs"
	FindingLiveBlind       = "running-kubelet-blind"
	FindingLivePressure    = "disk-pressure"
	FindingAutoSnapshot    = "auto-snapshots"
	FindingCapacity        = "capacity-inflated"
	FindingImageGC         = "image-gc"
	FindingLogLines        = "log-lines"
	FindingPercent         = "percent-threshold"
	FindingPercentReclaim  = "percent-reclaim"
	FindingInodes          = "inode-threshold"
	FindingNoDisk          = "no-disk-threshold"
	FindingNoMemory        = "no-memory-threshold"
	FindingContainerFS     = "containerfs-configured"
	FindingNodeFSFirst     = "nodefs-first"
	FindingTooHigh         = "threshold-too-high"
	FindingMet             = "threshold-met"
	FindingFlagOverFiles   = "flag-over-files"
	FindingFileIgnored     = "file-ignored"
	FindingFileBroken      = "file-broken"
	FindingUnknownKey      = "unknown-key"
	FindingNoDefaults      = "no-defaults"
	FindingMinimumTooLarge = "reclaim-too-large"
)

// inquiry is what findings are looked for in.
type inquiry struct {
	Node
	report     *Report
	config     *Config
	thresholds []threshold
	bad        []invalid
	found      []Finding
}

// findings are all that there is to say of a node, the gravest first.
func findings(q *inquiry) []Finding {
	q.versions()
	q.programs()
	q.mounts()
	q.datasets()
	if q.Config != nil {
		q.files()
		q.values()
		q.signals()
		q.order()
		q.logLines()
	}
	q.imageGC()
	q.live()
	rank := []string{Critical, Warning, Notice}
	slices.SortStableFunc(q.found, func(a, b Finding) int {
		return cmp.Compare(slices.Index(rank, a.Severity), slices.Index(rank, b.Severity))
	})
	if q.found == nil {
		return []Finding{}
	}
	return q.found
}

func (q *inquiry) add(severity, id, subject, what, why, fix string) {
	q.found = append(q.found, Finding{ID: id, Severity: severity, Subject: subject, What: what, Why: why, Fix: fix})
}

// disk is one of the two file systems with the name of its signals.
type disk struct {
	name string // nodefs or imagefs
	fs   *FS
	view View
}

// disks are the two, or one if they are the same.
func (q *inquiry) disks() []disk {
	list := []disk{
		{"nodefs", &q.Facts.NodeFS, q.report.NodeFS},
		{"imagefs", &q.Facts.ImageFS, q.report.ImageFS},
	}
	if list[0].fs.Source == list[1].fs.Source {
		return list[:1]
	}
	return list
}

// onZFS are those of disks that are datasets.
func (q *inquiry) onZFS() []disk {
	return slices.DeleteFunc(q.disks(), func(d disk) bool { return !d.fs.OnZFS() })
}

// reader is the program that the kubelet is part of, for people.
func (q *inquiry) reader() string {
	if strings.HasPrefix(q.Facts.Layout.Kind, "k3s") {
		return "k3s"
	}
	return "the kubelet"
}

func (q *inquiry) unit() string {
	switch {
	case q.config.Unit != nil && q.config.Unit.Name != "":
		return q.config.Unit.Name
	case q.reader() == "k3s":
		return "k3s.service"
	}
	return "kubelet.service"
}
