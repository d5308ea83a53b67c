package eviction

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs"
)

// trap is a healthy node with one thing wrong, and the findings beside that of the lines
// in the log.
type trap struct {
	name string
	set  func(*Node)
	want []string // severity, identity and subject
}

func set(signal, value string) func(*Node) {
	return func(n *Node) {
		n.Config.Hard[signal] = Setting{Value: value, Origin: OriginDropIn, Source: "50-mine.conf"}
	}
}

var traps = []trap{
	{"nothing", func(*Node) {}, nil},
	{"inodes of a disk without ZFS run out", func(n *Node) {
		plain(n)
		n.Facts.NodeFS.Statfs.InodesFree = 100
		n.Facts.ImageFS.Statfs.InodesFree = 100
		set(NodeFSInodes, "5%")(n)
	}, []string{"critical inode-threshold nodefs.inodesFree"}},
	{"image GC above 100%", func(n *Node) { n.Config.ImageGCHighPercent = Setting{Value: "200", Origin: OriginFlag} },
		[]string{"critical invalid-threshold imageGCHighThresholdPercent"}},
	{"image GC that is no number", func(n *Node) { n.Config.ImageGCLowPercent = Setting{Value: "much", Origin: OriginFlag} },
		[]string{"critical invalid-threshold imageGCLowThresholdPercent"}},
	{"image GC below the default of the other", func(n *Node) { n.Config.ImageGCHighPercent = Setting{Value: "70", Origin: OriginFile} },
		[]string{"critical invalid-threshold imageGCHighThresholdPercent"}},
	{"image GC above the default of the other", func(n *Node) { n.Config.ImageGCLowPercent = Setting{Value: "85", Origin: OriginFile} },
		[]string{"critical invalid-threshold imageGCLowThresholdPercent"}},
	{"image GC by an age below 0", func(n *Node) { n.Config.ImageMaximumGCAge = Setting{Value: "-1h", Origin: OriginFile} },
		[]string{"critical invalid-threshold imageMaximumGCAge"}},
	{"1.36.0", func(n *Node) { n.Version = v1360 }, []string{"critical kubelet-without-zfs /var/lib/kubelet"}},
	{"1.36.0 with images only", func(n *Node) {
		n.Version = v1360
		n.Facts.NodeFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib)
	}, []string{"critical kubelet-without-zfs " + imagePath}},
	{"1.36.0 without ZFS", func(n *Node) {
		n.Version = v1360
		n.Facts.NodeFS, n.Facts.ImageFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib), ext4("/dev/sda1", imagePath, 100*gib, 50*gib)
	}, nil},
	{"no version", func(n *Node) { n.Version = Version{} }, []string{"notice version-not-known "}},
	{"a later version", func(n *Node) { n.Version = mustVersion("v1.38.0") }, []string{"notice version-not-known "}},
	{"no zfs in PATH", func(n *Node) { n.Facts.Host.ZFSProgram = "" }, []string{"critical zfs-not-in-path k3s.service"}},
	{"no zfs in PATH and no /dev/zfs", func(n *Node) { n.Facts.Host.ZFSProgram, n.Facts.Host.DevZFS = "", false }, nil},
	{"no zfs in PATH of 1.35", func(n *Node) { n.Facts.Host.ZFSProgram, n.Version = "", v135 }, nil},
	{"an unprivileged container", func(n *Node) {
		n.Facts.Host.Container, n.Facts.Host.Unprivileged = "lxc", true
		unanswered(n)
	}, []string{"critical unprivileged-container /var/lib/kubelet"}},
	{"an unprivileged container without /dev/zfs", func(n *Node) {
		n.Facts.Host.Container, n.Facts.Host.Unprivileged, n.Facts.Host.DevZFS = "lxc", true, false
		unanswered(n)
	}, nil},
	{"zfs does not answer", unanswered, []string{
		"critical zfs-does-not-answer /var/lib/kubelet", "critical zfs-does-not-answer " + imagePath,
	}},
	{"the zfs that the kubelet finds is broken", func(n *Node) {
		for _, f := range []*FS{&n.Facts.NodeFS, &n.Facts.ImageFS} {
			f.KubeletZFSError = "/opt/bin/zfs list " + f.Source + ": permission denied"
		}
	}, []string{"critical zfs-does-not-answer " + nodePath, "critical zfs-does-not-answer " + imagePath}},
	{"zfs does not answer to this user", func(n *Node) { unanswered(n); n.Facts.Host.Root = false }, []string{
		"warning zfs-does-not-answer /var/lib/kubelet", "warning zfs-does-not-answer " + imagePath,
	}},
	{"images are mounted late", func(n *Node) {
		n.Config.Unit.Started = time.Unix(1000, 0)
		n.Facts.NodeFS.MountedAt, n.Facts.ImageFS.MountedAt = time.Unix(900, 0), time.Unix(1001, 0)
	}, []string{"critical mounted-too-late tank/containerd"}},
	{"nothing waits for a mount", func(n *Node) { n.Config.Unit.MountsFor = []string{imagePath} }, []string{"notice mount-order tank/kubelet"}},
	{"nothing waits for a mount by hand", func(n *Node) {
		n.Config.Unit.MountsFor = []string{nodePath, "/var/lib/rancher"}
		n.Facts.ImageFS.Dataset.CanMount = "noauto"
	}, []string{"warning mount-order tank/containerd"}},
	{"a unit after all mounts", func(n *Node) { n.Config.Unit.MountsFor, n.Config.Unit.AfterMounts = nil, true }, nil},
	{"a dataset is not mounted", func(n *Node) { n.Facts.ImageFS.Hidden = []string{"tank/rancher"} }, []string{"critical not-mounted tank/rancher"}},
	{"a percentage", set(ImageFSAvailable, "15%"), []string{"warning percent-threshold imagefs.available"}},
	{"a percentage on 1.35", func(n *Node) { n.Version = v135; set(ImageFSAvailable, "15%")(n) }, nil},
	{"a percentage of inodes", set(NodeFSInodes, "5%"), []string{"warning inode-threshold nodefs.inodesFree"}},
	{"a percentage of inodes on 1.35", func(n *Node) { n.Version = v135; set(NodeFSInodes, "5%")(n) }, []string{"notice inode-threshold nodefs.inodesFree"}},
	{"a number of inodes on 1.35", func(n *Node) { n.Version = v135; set(NodeFSInodes, "1k")(n) }, []string{"warning inode-threshold nodefs.inodesFree"}},
	{"a number of inodes where there are none", func(n *Node) {
		n.Facts.NodeFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib)
		n.Facts.NodeFS.Statfs.Inodes, n.Facts.NodeFS.Statfs.InodesFree = 0, 0
		set(NodeFSInodes, "1k")(n)
	}, []string{"critical inode-threshold nodefs.inodesFree"}},
	{"a flag over files", func(n *Node) {
		by := Setting{Value: "nodefs.available<5%", Origin: OriginFlag, Source: "kubelet-arg in /etc/rancher/k3s/config.yaml"}
		n.Config.Lost = []Lost{{"evictionHard", ImageFSAvailable, n.Config.Hard[ImageFSAvailable], by}}
		delete(n.Config.Hard, ImageFSAvailable)
	}, []string{
		"critical no-disk-threshold imagefs.available",
		"warning flag-over-files evictionHard by kubelet-arg in /etc/rancher/k3s/config.yaml",
		"warning nodefs-first nodefs.available",
	}},
	{"a file with another suffix", func(n *Node) {
		n.Config.Ignored = []Ignored{{"/etc/kubernetes/90-x.yaml", IgnoredSuffix}}
	}, []string{"warning file-ignored /etc/kubernetes/90-x.yaml"}},
	{"a file without a kind", func(n *Node) { n.Config.Ignored = []Ignored{{"/etc/90-x.conf", IgnoredNoHeader}} }, []string{"critical file-broken /etc/90-x.conf"}},
	{"a misspelt key", func(n *Node) {
		n.Config.Unknown = []UnknownKey{{"/etc/90-x.conf", "evictionHardd", "evictionHard", true}}
	}, []string{"warning unknown-key /etc/90-x.conf"}},
	{"a misspelt signal", set("nodefs.inodefree", "5%"), []string{"critical invalid-threshold nodefs.inodefree"}},
	{"a threshold of nothing", set(NodeFSInodes, "0"), []string{"critical invalid-threshold nodefs.inodesFree"}},
	{"snapshots of images", func(n *Node) { n.Facts.ImageFS.Dataset.Snapshots = 48 }, []string{"warning auto-snapshots tank/containerd"}},
	{"automatic snapshots of pods", func(n *Node) { n.Facts.NodeFS.Dataset.AutoSnapshot = "true" }, []string{"warning auto-snapshots tank/kubelet"}},
	{"no automatic snapshots", func(n *Node) { n.Facts.NodeFS.Dataset.AutoSnapshot = "false" }, nil},
	{"snapshots of the system", func(n *Node) {
		n.Facts.NodeFS.Dataset.Snapshots, n.Facts.NodeFS.Point = 3, "/"
	}, []string{"notice auto-snapshots tank/kubelet"}},
	{"no memory", func(n *Node) { delete(n.Config.Hard, MemoryAvailable) }, []string{"warning no-memory-threshold memory.available"}},
	{"a percentage to reclaim", func(n *Node) {
		n.Config.MinimumReclaim[NodeFSAvailable] = Setting{Value: "10%", Origin: OriginDropIn, Source: "00-k3s-defaults.conf"}
	}, []string{"warning percent-reclaim nodefs.available"}},
	{"more to reclaim than there is", func(n *Node) {
		n.Config.MinimumReclaim[NodeFSAvailable] = Setting{Value: "95Gi"}
	}, []string{"warning reclaim-too-large nodefs.available"}},
	{"pods before images", set(ImageFSAvailable, "2Gi"), []string{"warning nodefs-first nodefs.available"}},
	{"two pools", func(n *Node) {
		n.Facts.ImageFS = dataset("fast/containerd", imagePath, 10*gib, 0, 0, 100*gib)
		set(ImageFSAvailable, "2Gi")(n)
	}, nil},
	{"a wrong capacity", func(n *Node) {
		n.Facts.ImageFS = dataset("tank/containerd", imagePath, 10*gib, 30*gib, 0, 100*gib)
	}, []string{"warning capacity-inflated imagefs"}},
	{"images are removed for nothing", func(n *Node) {
		n.Facts.ImageFS = dataset("tank/containerd", imagePath, 10*gib, 400*gib, 300*gib, 100*gib)
	}, []string{"warning capacity-inflated imagefs", "warning image-gc " + imagePath}},
	{"containerfs", set(ContainerFSAvailable, "3Gi"), []string{"warning containerfs-configured containerfs.available"}},
	{"no file", func(n *Node) { n.Config.Hard = nil }, []string{
		"critical no-defaults nodefs.available", "critical no-defaults imagefs.available", "warning no-memory-threshold memory.available",
	}},
	{"an empty map", func(n *Node) { n.Config.Hard, n.Config.ConfigFile = map[string]Setting{}, true }, []string{
		"critical no-disk-threshold nodefs.available", "critical no-disk-threshold imagefs.available", "warning no-memory-threshold memory.available",
	}},
	{"too high", set(ImageFSAvailable, "60Gi"), []string{"warning threshold-too-high imagefs.available"}},
	{"pressure", func(n *Node) { n.Facts.NodeFS.Dataset.Available = gib }, []string{
		"critical threshold-met nodefs.available", "warning capacity-inflated nodefs",
	}},
	{"a degraded pool", func(n *Node) { n.Facts.NodeFS.Dataset.PoolHealth = "DEGRADED" }, []string{"warning pool-health tank"}},
	{"a suspended pool", func(n *Node) {
		n.Facts.NodeFS.Dataset.PoolHealth, n.Facts.ImageFS.Dataset.PoolHealth = "SUSPENDED", "SUSPENDED"
	}, []string{"critical pool-health tank"}},
	{"not restarted", func(n *Node) {
		n.Live = &Live{Hard: map[string]string{NodeFSAvailable: "5%"}}
	}, []string{"warning running-kubelet-differs evictionHard"}},
	{"restarted", func(n *Node) {
		n.Live = &Live{Hard: valuesOf(n.Config.Hard), MinimumReclaim: valuesOf(n.Config.MinimumReclaim)}
	}, nil},
	{"a blind kubelet", func(n *Node) {
		n.Live = &Live{Summary: true, NodeFS: &Stats{Capacity: new(uint64), Available: new(uint64)}, ImageFS: &Stats{}, DiskPressure: true}
	}, []string{"critical running-kubelet-blind imagefs", "critical disk-pressure "}},
}

// unanswered takes away what zfs says.
func unanswered(n *Node) {
	for _, f := range []*FS{&n.Facts.NodeFS, &n.Facts.ImageFS} {
		f.Dataset, f.ZFSError = nil, "zfs list "+f.Source+": permission denied"
	}
}

func TestTraps(t *testing.T) {
	for _, trap := range traps {
		t.Run(trap.name, func(t *testing.T) {
			n := healthy()
			trap.set(&n)
			r := Examine(n)
			var got []string
			for _, f := range r.Findings {
				if f.ID != FindingLogLines {
					got = append(got, f.Severity+" "+f.ID+" "+f.Subject)
				}
				checkWords(t, f)
			}
			if !slices.Equal(got, trap.want) {
				t.Errorf("got %q\nwant %q", got, trap.want)
			}
		})
	}
}

// checkWords holds that a finding says all that a person needs.
func checkWords(t *testing.T, f Finding) {
	t.Helper()
	for _, text := range []string{f.What, f.Why} {
		if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, `."`) && !strings.HasSuffix(text, `"`) && !strings.Contains(text, "permission denied") {
			t.Errorf("%s: %q is no sentence", f.ID, text)
		}
	}
	if f.Fix == "" && f.ID != FindingVersion {
		t.Errorf("%s: nothing says what to do", f.ID)
	}
	if text := f.What + f.Why + f.Fix; strings.Contains(text, "%!") || strings.Contains(text, "  ") || strings.Contains(text, " . ") {
		t.Errorf("%s: %q", f.ID, text)
	}
}

// Every identity is that of some trap, or else nothing shows that it is ever found.
func TestEveryFindingHasATrap(t *testing.T) {
	found := map[string]bool{}
	for _, trap := range traps {
		n := healthy()
		trap.set(&n)
		for _, f := range Examine(n).Findings {
			found[f.ID] = true
		}
	}
	for _, id := range []string{
		FindingNoPlugin, FindingNoProgram, FindingNoAnswer, FindingUnprivileged, FindingInvalid, FindingMountedLate, FindingNotMounted,
		FindingMountOrder, FindingVersion, FindingPool, FindingLiveDiffers, FindingLiveBlind, FindingLivePressure, FindingAutoSnapshot,
		FindingCapacity, FindingImageGC, FindingLogLines, FindingPercent, FindingPercentReclaim, FindingInodes, FindingNoDisk, FindingNoMemory,
		FindingContainerFS, FindingNodeFSFirst, FindingTooHigh, FindingMet, FindingFlagOverFiles, FindingFileIgnored, FindingFileBroken,
		FindingUnknownKey, FindingNoDefaults, FindingMinimumTooLarge,
	} {
		if !found[id] {
			t.Errorf("no trap finds %s", id)
		}
	}
}

// A node that has everything wrong must still come to an end, and so must an empty one.
func TestExamineAnything(t *testing.T) {
	for _, n := range []Node{{}, {Version: v137, Live: &Live{Summary: true}}, capacityBug()} {
		r := Examine(n)
		for _, f := range r.Findings {
			checkWords(t, f)
		}
	}
	n := healthy()
	n.Facts.NodeFS.Dataset.Ancestors = nil
	n.Facts.NodeFS.Dataset.Space = zfs.Space{Name: "tank"}
	Examine(n)
}

func TestCapacityBug(t *testing.T) {
	n := capacityBug()
	r := Examine(n)
	for _, want := range []string{FindingMet, FindingCapacity, FindingPercent, FindingImageGC, FindingInodes} {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.ID == want }) {
			t.Errorf("%s is not found", want)
		}
	}
	n.Config = r.Plan.Over(n.Config, "90-tarn-zfs.conf")
	for _, f := range Examine(n).Findings {
		if f.Severity == Critical || f.ID == FindingImageGC {
			t.Errorf("with the plan: %+v", f)
		}
	}
}

// A dataset that is nearly empty is counted rightly: then two numbers that are the same explain nothing.
func TestPercentOfAnEmptyDataset(t *testing.T) {
	n := healthy()
	n.Facts.NodeFS = dataset("tank/kubelet", nodePath, 1<<16, 0, 0, 40*gib)
	n.Config.Hard[NodeFSAvailable] = Setting{Value: "5%", Origin: OriginDropIn}
	r := Examine(n)
	at := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.ID == FindingPercent })
	if at < 0 || strings.Contains(r.Findings[at].What, "and not") || !strings.Contains(r.Findings[at].What, "2 GiB") {
		t.Errorf("%d: %+v", at, r.Findings)
	}
}

func TestBothFireTogether(t *testing.T) {
	n := healthy()
	n.Config.Hard[ImageFSAvailable] = n.Config.Hard[NodeFSAvailable]
	r := Examine(n)
	at := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.ID == FindingNodeFSFirst })
	if at < 0 || !strings.Contains(r.Findings[at].What, "together") {
		t.Errorf("%d: %+v", at, r.Findings)
	}
}
