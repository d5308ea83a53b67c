package eviction

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// inflationWorthSaying is from where on a wrong capacity is a finding.
const inflationWorthSaying = 1.2

// versions is about what the kubelet's version does with ZFS at all.
func (q *inquiry) versions() {
	b := q.report.Behaviour
	zfs := q.onZFS()
	if len(zfs) == 0 {
		return
	}
	if b.NoPlugin {
		const upgrade = "Upgrade to Kubernetes 1.36.1 or later, or stay on 1.35."
		if q.Facts.NodeFS.OnZFS() {
			q.add(Critical, FindingNoPlugin, q.Facts.NodeFS.Path,
				fmt.Sprintf("The kubelet of %s does not start with %s on ZFS.", q.Version, q.Facts.NodeFS.Path),
				"This version was built without its part for ZFS (kubernetes #138556): it ends with \"no plugin found for filesystem type: zfs\".", upgrade)
		} else {
			q.add(Critical, FindingNoPlugin, q.Facts.ImageFS.Path,
				fmt.Sprintf("The kubelet of %s evicts nothing with %s on ZFS.", q.Version, q.Facts.ImageFS.Path),
				"This version was built without its part for ZFS: it does not find the device of the images, and gives up in each pass.", upgrade)
		}
	}
	if !b.Known {
		fix := ""
		if !q.Version.Known() {
			fix = "Give the version, or run this where the kubelet or k3s is installed."
		}
		q.add(Notice, FindingVersion, "", "How this version of the kubelet treats ZFS is not known.", b.Note, fix)
	}
}

// programs is about the program zfs, which the kubelet of 1.36.1 and later runs.
func (q *inquiry) programs() {
	h := q.Facts.Host
	zfs := q.onZFS()
	if len(zfs) == 0 || !q.report.Behaviour.RunsZFS || !h.DevZFS {
		return
	}
	effect := "it does not start"
	if !q.Facts.NodeFS.OnZFS() {
		effect = "it evicts nothing and removes no images"
	}
	const needs = "From 1.36.1 to 1.37.2 the kubelet takes /dev/zfs for a promise that zfs list works, and knows nothing of a dataset where it does not. "
	if h.ZFSProgram == "" {
		q.add(Critical, FindingNoProgram, q.unit(),
			"There is /dev/zfs, and no program zfs in the PATH of "+q.reader()+": "+effect+".",
			needs+"Its PATH is "+h.SearchPath+".",
			"Install the programs of ZFS (zfsutils-linux), or give "+q.unit()+" a PATH with them in a drop-in: [Service] Environment=PATH=…")
		return
	}
	for _, d := range zfs {
		said, fix := d.fs.ZFSError, "Run zfs list "+d.fs.Source+" as root and mend what it says."
		if d.fs.Dataset != nil {
			if d.fs.KubeletZFSError == "" {
				continue
			}
			said = d.fs.KubeletZFSError
			fix = "The kubelet finds " + h.ZFSProgram + " by its PATH (" + h.SearchPath + "), and another zfs answers: mend that program, or give " + q.unit() + " another PATH."
		}
		if d.view.unsure {
			q.add(Warning, FindingNoAnswer, d.fs.Path, "zfs list does not answer to this user for "+orUnknown(d.fs.Source)+".",
				needs+"Whether it does for the kubelet, which is root, is not known. Here it says: "+said, "Run this as root.")
			continue
		}
		if h.Unprivileged {
			q.add(Critical, FindingUnprivileged, d.fs.Path,
				"This is an unprivileged container, where zfs does not answer: with "+d.fs.Path+" on ZFS "+effect+".",
				needs+"Here zfs list says: "+said,
				"Take /dev/zfs away from the container in its configuration on the host, so that the kubelet asks the kernel instead; "+
					"or delegate the dataset to the container (zfs zone) with OpenZFS 2.2 or later.")
			return
		}
		q.add(Critical, FindingNoAnswer, d.fs.Path,
			"zfs list does not answer for "+orUnknown(d.fs.Source)+": "+effect+".",
			needs+"Here it says: "+said, fix)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "a dataset that is not known"
	}
	return s
}

// mounts is about datasets that are mounted after the kubelet has looked.
func (q *inquiry) mounts() {
	unit := q.config.Unit
	fixOrder := fmt.Sprintf("Let %s wait for its mounts, in a drop-in: [Unit] After=zfs-mount.service RequiresMountsFor=%s", q.unit(), q.wantedMounts())
	for _, d := range q.disks() {
		for _, hidden := range d.fs.Hidden {
			q.add(Critical, FindingNotMounted, hidden,
				fmt.Sprintf("The dataset %s belongs above %s and is not mounted.", hidden, d.fs.Path),
				"What is written now goes to "+orUnknown(d.fs.Source)+" and is hidden as soon as it is mounted; a running kubelet does not notice.",
				fmt.Sprintf("Stop %s, mount it with zfs mount %s, move what was written meanwhile. %s", q.reader(), hidden, fixOrder))
		}
		if !d.fs.OnZFS() || unit == nil {
			continue
		}
		late := !unit.Started.IsZero() && d.fs.MountedAt.After(unit.Started)
		switch {
		case late:
			q.add(Critical, FindingMountedLate, d.fs.Source,
				fmt.Sprintf("%s was mounted after %s was started.", d.fs.Source, q.unit()), lateEffect(d.name),
				fmt.Sprintf("Restart %s. %s", q.unit(), fixOrder))
		case !unit.AfterMounts && !covers(unit.MountsFor, d.fs.Point) && d.fs.Point != "/":
			severity := Notice // zfs-mount.service is early as a rule
			if ds := d.fs.Dataset; ds != nil && ds.CanMount == "noauto" {
				severity = Warning
			}
			q.add(severity, FindingMountOrder, d.fs.Source,
				fmt.Sprintf("Nothing makes %s wait until %s is mounted.", q.unit(), d.fs.Source),
				"The kubelet reads the table of mounts once, when it starts. "+lateEffect(d.name), fixOrder)
		}
	}
}

func lateEffect(name string) string {
	if name == "nodefs" {
		return "With a dataset mounted after that it watches the file system below it, or does not start."
	}
	return "With a dataset mounted after that it does not find the device of the images and evicts nothing at all."
}

// wantedMounts are the paths for RequiresMountsFor.
func (q *inquiry) wantedMounts() string {
	var paths []string
	for _, d := range q.disks() {
		paths = append(paths, d.fs.Path)
	}
	return strings.Join(paths, " ")
}

// covers tells whether a mount point is on the way to one of RequiresMountsFor's paths.
func covers(mountsFor []string, point string) bool {
	return slices.ContainsFunc(mountsFor, func(path string) bool { return within(point, path) })
}

// within tells whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// datasets is about the datasets as such: health, capacity, snapshots.
func (q *inquiry) datasets() {
	pools := map[string]bool{}
	for _, d := range q.onZFS() {
		ds := d.fs.Dataset
		if ds == nil {
			continue
		}
		if health := ds.PoolHealth; health != "" && health != "ONLINE" && !pools[ds.Pool()] {
			pools[ds.Pool()] = true
			severity := Critical
			if health == "DEGRADED" {
				severity = Warning
			}
			q.add(severity, FindingPool, ds.Pool(), fmt.Sprintf("The pool %s is %s.", ds.Pool(), health),
				"The kubelet sees only how much is free, not that devices have failed.", "See zpool status -v "+ds.Pool()+".")
		}
		q.capacity(d)
		q.snapshots(d)
	}
}

func (q *inquiry) capacity(d disk) {
	if d.view.Inflation <= inflationWorthSaying {
		return
	}
	ds := d.fs.Dataset
	q.add(Warning, FindingCapacity, d.name,
		fmt.Sprintf("The kubelet takes %s for %s large; it is %s.", ds.Name, FormatBytes(*d.view.Capacity), FormatBytes(d.view.Real)),
		fmt.Sprintf("It adds used (%s, with snapshots and datasets below it), available (%s) and usedbydataset (%s), which is in used already. "+
			"Every percentage is of this sum: thresholds, the collection of images, and the ephemeral-storage of the node, which is too large by as much.",
			FormatBytes(ds.Used), FormatBytes(ds.Available), FormatBytes(ds.UsedByDataset)),
		"Write thresholds in bytes (tarn kubelet config). Give containerd and the kubelet datasets of their own, with nothing below them and no snapshots.")
}

func (q *inquiry) snapshots(d disk) {
	ds := d.fs.Dataset
	auto := ds.AutoSnapshot != "" && ds.AutoSnapshot != "false"
	n := ds.Snapshots + ds.SnapshotsBelow
	if !auto && n == 0 {
		return
	}
	what := fmt.Sprintf("%s has %d snapshots, which hold %s.", ds.Name, n, FormatBytes(ds.UsedBySnapshots))
	if n == 0 {
		what = fmt.Sprintf("%s is set to get automatic snapshots (com.sun:auto-snapshot=%s).", ds.Name, ds.AutoSnapshot)
	}
	why := "What the kubelet removes to make room stays in the snapshots and frees nothing, so it goes on removing; " +
		"and nothing in it is worth a snapshot: images are pulled again."
	severity, fix := Warning, fmt.Sprintf("zfs set com.sun:auto-snapshot=false %s, leave it out of sanoid, zrepl and the like, "+
		"and destroy the snapshots that are there.", ds.Name)
	if strings.Count(d.fs.Point, "/") < 3 { // /, /var or /var/lib: there is more on it
		severity, fix = Notice, fmt.Sprintf("Give %s a dataset of its own without snapshots.", d.fs.Path)
	}
	q.add(severity, FindingAutoSnapshot, ds.Name, what, why, fix)
}
