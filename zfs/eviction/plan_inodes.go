package eviction

import "math"

// defaultInodes is the kubelet's own threshold for inodes.
const defaultInodes = "5%"

// addInodes switches off thresholds of inodes where the file system is ZFS, and keeps those
// of others: one that is left out of evictionHard has no default any more. 0% is written and
// nothing left out: what is left out is inherited from the files below.
func (p *Plan) addInodes(node, image *FS, c *Config) {
	if c == nil {
		c = &Config{}
	}
	const useless = "off: inodes of ZFS are made of free bytes, or not known at all"
	of := map[string]*FS{NodeFSInodes: node, ImageFSInodes: image, ContainerFSInodes: image}
	for _, signal := range []string{NodeFSInodes, ImageFSInodes} {
		if of[signal].OnZFS() {
			p.Hard = append(p.Hard, Amount{Signal: signal, Value: "0%", Reason: useless})
		} else if a, ok := keptInodes(signal, of[signal], c); ok {
			p.Hard = append(p.Hard, a)
		}
	}
	for _, signal := range []string{ContainerFSAvailable, ContainerFSInodes} {
		if _, there := c.Hard[signal]; there {
			p.Hard = append(p.Hard, Amount{Signal: signal, Value: "0%", Reason: "off: the kubelet makes its own of imagefs or nodefs"})
		}
	}
	for signal := range sorted(c.Soft) {
		if isInodes(signal) && of[signal].OnZFS() {
			p.Soft = append(p.Soft, Amount{Signal: signal, Value: "0%", Reason: useless})
		}
	}
}

// keptInodes is the threshold that a file system other than ZFS has or should have; ok is false
// if it is better without one, as it is now.
func keptInodes(signal string, f *FS, c *Config) (a Amount, ok bool) {
	a = Amount{Signal: signal, Value: defaultInodes, Reason: "the kubelet's own default, which is gone where evictionHard is set at all"}
	if f.Statfs.Inodes == 0 || f.Statfs.Inodes > math.MaxInt64 {
		// A number above that is a negative one for the kubelet, and less than any threshold.
		a.Value, a.Reason = "0%", "off: "+f.Type+" counts no inodes"
		return a, true
	}
	o := observe(&f.Statfs.InodesFree, &f.Statfs.Inodes)
	s, set := c.Hard[signal]
	if !set {
		// What was not in force must not evict as soon as it is.
		t, err := parseThreshold(signal, Setting{Value: defaultInodes})
		return a, err == nil && 2*t.value.of(o.capacity) <= o.available
	}
	switch _, err := parseThreshold(signal, s); {
	case err != nil: // the kubelet does not start with it
	case s.Value != defaultInodes:
		a.Value, a.Reason = s.Value, "as it was configured"
	}
	return a, true
}
