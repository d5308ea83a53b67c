package eviction

// Ways in which a kubelet counts the capacity of a dataset.
const (
	CapacityStatfs   = "statfs"   // referenced + available: right
	CapacityInflated = "inflated" // used + available + usedbydataset: counts twice
)

// Behaviour is how a version of the kubelet treats ZFS.
type Behaviour struct {
	// NoPlugin is the version that knows no ZFS at all and so does not start with its
	// root directory on it.
	NoPlugin bool `json:"noPlugin,omitempty"`
	// RunsZFS tells that it runs the program zfs if /dev/zfs is there, and knows
	// nothing of a dataset if that fails.
	RunsZFS bool `json:"runsZFS"`
	// Capacity is one of the constants, and holds where /dev/zfs is there.
	Capacity string `json:"capacity"`
	// Known is false for a version that was not looked at: then this is how the
	// nearest one behaves that was.
	Known bool `json:"known"`
	// Note says it in a sentence.
	Note string `json:"note"`
}

// The versions that were looked at. Newer ones may behave like these or not.
const (
	firstKnownMinor = 33
	lastKnownMinor  = 37
	lastPatch36     = 3
	lastPatch37     = 2
)

// BehaviourOf tells how a kubelet of version v treats ZFS.
func BehaviourOf(v Version) Behaviour {
	newest := Behaviour{
		RunsZFS: true, Capacity: CapacityInflated, Known: true,
		Note: "It runs zfs list, counts the capacity of a dataset as used + available + usedbydataset, and knows no inodes.",
	}
	older := Behaviour{
		Capacity: CapacityStatfs, Known: true,
		Note: "It asks the kernel (statfs), which knows capacity and inodes of a dataset.",
	}
	unseen := func(b Behaviour, note string) Behaviour {
		b.Known, b.Note = false, note+" "+b.Note
		return b
	}
	switch {
	case !v.Known():
		return unseen(newest, "The version is not known. What follows holds for 1.36.1 to 1.37.2.")
	case !v.atLeast(1, firstKnownMinor, 0):
		return unseen(older, "Versions before 1.33 were not looked at. What follows holds for 1.33 to 1.35.")
	case !v.atLeast(1, 36, 0):
		return older
	case !v.atLeast(1, 36, 1):
		return Behaviour{NoPlugin: true, Capacity: CapacityInflated, Known: true,
			Note: "It knows no ZFS: it does not start with its root directory on a dataset."}
	case v.Minor == 36 && v.Patch <= lastPatch36, v.Minor == lastKnownMinor && v.Patch <= lastPatch37:
		return newest
	}
	return unseen(newest, "Versions after 1.36.3 and 1.37.2 were not looked at and may be mended. What follows holds for 1.36.1 to 1.37.2.")
}

// ReadsDropIns tells whether a kubelet of this version, or the one in a k3s of this
// version, reads a directory of drop-in files. It is false for no version.
func ReadsDropIns(v Version, k3s bool) bool {
	if k3s {
		return v.atLeast(1, 32, 0)
	}
	return v.atLeast(1, 30, 0)
}
