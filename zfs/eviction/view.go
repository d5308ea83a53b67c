package eviction

import (
	"fmt"
	"math"
)

// view is what a kubelet of this behaviour sees of a file system. Problem is set if
// it sees nothing.
func (b Behaviour) view(h Host, f *FS) View {
	v := View{Real: f.Statfs.Capacity}
	if d := f.Dataset; d != nil {
		v.Real = d.Referenced + d.Available
	}
	switch {
	case f.OnZFS() && b.NoPlugin:
		v.Problem = "this version knows no ZFS"
		return v
	case !f.OnZFS() || !b.RunsZFS || !h.DevZFS:
		v.Stats = statfsStats(f.Statfs)
	case h.ZFSProgram == "":
		v.Problem = "the program zfs is not in the PATH of the kubelet (" + h.SearchPath + ")"
		return v
	case f.Dataset == nil:
		v.unsure = !h.Root
		v.Problem = "zfs list does not answer: " + f.ZFSError
		return v
	case f.KubeletZFSError != "":
		v.unsure = !h.Root
		v.Problem = "zfs list does not answer: " + f.KubeletZFSError
		return v
	default:
		d := f.Dataset
		v.Stats = Stats{Capacity: new(d.Used + d.Available + d.UsedByDataset), Available: new(d.Available)}
		v.grows = true
	}
	if v.Real > 0 {
		v.Inflation = math.Round(float64(*v.Capacity)/float64(v.Real)*1000) / 1000
	}
	return v
}

func statfsStats(s Statfs) Stats {
	return Stats{Capacity: new(s.Capacity), Available: new(s.Available), Inodes: new(s.Inodes), InodesFree: new(s.InodesFree)}
}

// observation is a pair of numbers that a threshold is compared with. The kubelet has
// them as signed numbers, so the largest unsigned ones become negative.
type observation struct{ available, capacity int64 }

func observe(available, capacity *uint64) *observation {
	if available == nil || capacity == nil {
		return nil
	}
	return &observation{int64(*available), int64(*capacity)}
}

// observations are the kubelet's, of the disks. With containerd containerfs is imagefs.
func observations(node, image View) map[string]*observation {
	return map[string]*observation{
		NodeFSAvailable:      observe(node.Available, node.Capacity),
		NodeFSInodes:         observe(node.InodesFree, node.Inodes),
		ImageFSAvailable:     observe(image.Available, image.Capacity),
		ImageFSInodes:        observe(image.InodesFree, image.Inodes),
		ContainerFSAvailable: observe(image.Available, image.Capacity),
		ContainerFSInodes:    observe(image.InodesFree, image.Inodes),
	}
}

// met tells whether a threshold fires at what is observed.
func (t *threshold) met(o *observation) bool {
	return !t.empty && !t.off && o != nil && t.value.of(o.capacity) > o.available
}

// dnodeSize is what ZFS takes for the least size of a file when it works out for
// statfs how many more would fit.
const dnodeSize = 512

// firesAt is how many bytes are available when the threshold fires because the file
// system itself fills up. nil is never, or not known.
func (t *threshold) firesAt(v View, f *FS) *uint64 {
	if t.empty || t.off || v.Capacity == nil {
		return nil
	}
	share := float64(t.value.share)
	if !isInodes(t.signal) {
		if !t.value.percent {
			return new(uint64(t.value.number))
		}
		capacity := float64(*v.Capacity)
		if v.grows {
			// Of available a and capacity c, x more bytes make a-x and c+x; it fires
			// where a-x is the share of c+x.
			return new(uint64(share * (float64(*v.Available) + capacity) / (1 + share)))
		}
		return new(uint64(share * capacity))
	}
	if !f.OnZFS() || v.Inodes == nil || *v.InodesFree > *v.Inodes {
		return nil // how many inodes fit into a byte is known of ZFS only
	}
	inodes := float64(t.value.number)
	if t.value.percent {
		inodes = share * float64(*v.Inodes-*v.InodesFree) / (1 - share)
	}
	return new(uint64(inodes * dnodeSize))
}

func noObservation(signal string) string {
	return fmt.Sprintf(`"Eviction manager: no observation found for eviction signal" signal=%q`, signal)
}
