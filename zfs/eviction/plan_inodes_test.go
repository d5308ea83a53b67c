package eviction

import (
	"math"
	"slices"
	"testing"
)

// Thresholds of inodes go where the file system is ZFS, and stay where it is not.
func TestPlanOfInodes(t *testing.T) {
	k3s := func(n *Node) { plain(n); n.Config = &Config{Hard: k3sHard()} }
	for _, c := range []struct {
		name        string
		set         func(*Node)
		node, image string // "" for none
	}{
		{"two datasets", func(*Node) {}, "0%", "0%"},
		{"nothing on ZFS and nothing known", func(n *Node) { plain(n); n.Config = nil }, "5%", "5%"},
		{"nothing on ZFS with k3s", k3s, "5%", "5%"},
		{"images elsewhere", func(n *Node) {
			n.Facts.ImageFS = ext4("/dev/sda1", imagePath, 100*gib, 50*gib)
			n.Config = &Config{Hard: DefaultHard()}
		}, "0%", "5%"},
		{"pods elsewhere", func(n *Node) {
			n.Facts.NodeFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib)
			n.Config = nil
		}, "5%", "0%"},
		{"chosen", func(n *Node) {
			k3s(n)
			set(NodeFSInodes, "1000")(n)
			set(ImageFSInodes, "0%")(n)
		}, "1000", "0%"},
		{"too few to begin with it", func(n *Node) { k3s(n); n.Facts.NodeFS.Statfs.InodesFree = n.Facts.NodeFS.Statfs.Inodes / 11 }, "", "5%"},
		{"in force with few", func(n *Node) {
			k3s(n)
			set(NodeFSInodes, "5%")(n)
			n.Facts.NodeFS.Statfs.InodesFree = 1
		}, "5%", "5%"},
		{"a file system that counts none", func(n *Node) {
			k3s(n)
			n.Facts.NodeFS.Type, n.Facts.NodeFS.Statfs.Inodes, n.Facts.NodeFS.Statfs.InodesFree = "btrfs", 0, 0
			set(NodeFSInodes, "1000")(n)
		}, "0%", "5%"},
		{"more than the kubelet can count", func(n *Node) {
			k3s(n)
			n.Facts.NodeFS.Statfs.Inodes, n.Facts.NodeFS.Statfs.InodesFree = math.MaxUint64, math.MaxUint64
		}, "0%", "5%"},
	} {
		n := healthy()
		c.set(&n)
		p, err := NewPlan(n)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for signal, want := range map[string]string{NodeFSInodes: c.node, ImageFSInodes: c.image} {
			got := ""
			for _, a := range p.Hard {
				if a.Signal == signal {
					got = a.Value
				}
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, signal, got, want)
			}
		}
		n.Config = p.Over(n.Config, "90-tarn-zfs.conf")
		if again, err := NewPlan(n); err != nil || again.KubeletConfiguration() == "" || !sameValues(p.Hard, again.Hard) {
			t.Errorf("%s: in force it leads to another one: %v, %+v", c.name, err, again)
		}
	}
	n := healthy()
	plain(&n)
	n.Config = &Config{Hard: k3sHard(), Soft: settings(OriginFile, "", map[string]string{NodeFSInodes: "10%"})}
	if p, err := NewPlan(n); err != nil || len(p.Soft) != 0 {
		t.Errorf("soft: %v, %+v", err, p)
	}
}

func sameValues(a, b []Amount) bool {
	return slices.EqualFunc(a, b, func(a, b Amount) bool { return a.Signal == b.Signal && a.Value == b.Value })
}

// What a node without ZFS lacks, and nothing else.
func TestSupplement(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Node)
		want []string
	}{
		{"k3s has none for memory", func(n *Node) { n.Config = &Config{Hard: k3sHard()} }, []string{MemoryAvailable}},
		{"none for memory, and no room", func(n *Node) {
			n.Config = &Config{Hard: k3sHard()}
			n.Facts.NodeFS.Statfs.Capacity, n.Facts.NodeFS.Statfs.Available = 4*gib, gib
		}, []string{MemoryAvailable}},
		{"no defaults", func(n *Node) { n.Config = &Config{} }, []string{MemoryAvailable, NodeFSAvailable, NodeFSInodes, ImageFSInodes}},
		{"all is there", func(n *Node) { n.Config = &Config{Hard: DefaultHard(), ConfigFile: true} }, nil},
		{"one is gone", func(n *Node) {
			n.Config = &Config{Hard: settings(OriginFile, "", map[string]string{MemoryAvailable: "100Mi"})}
		}, []string{NodeFSAvailable}},
	} {
		n := healthy()
		plain(&n)
		c.set(&n)
		p, err := Supplement(n, Examine(n).Findings)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		if p != nil {
			for _, a := range p.Hard {
				got = append(got, a.Signal)
			}
			n.Config = p.Over(n.Config, "90-tarn-zfs.conf")
			if left, err := Supplement(n, Examine(n).Findings); left != nil || err != nil {
				t.Errorf("%s: something is missing still: %+v, %v", c.name, left, err)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// As flags, where one replaces a whole map, no map must be emptied.
	if p, err := Supplement(Node{}, []Finding{{ID: FindingNoMemory, Subject: MemoryAvailable}}); err != nil || !slices.Equal(p.Flags(), []string{"eviction-hard=memory.available<100Mi"}) {
		t.Errorf("%+v, %v", p, err)
	}
}
