package eviction

import (
	"fmt"
	"math"
	"testing"
)

// linesOf is what is foretold of the log, as "nodefs.inodesFree 1".
func linesOf(r *Report) string {
	text := ""
	for _, l := range r.Lines {
		text += fmt.Sprintf("%s %d; ", l.Signal, l.Times)
	}
	return text
}

// The lines by version and configuration, as the kubelet's eviction manager wrote them.
func TestLines(t *testing.T) {
	const all = "nodefs.inodesFree 1; imagefs.inodesFree 1; containerfs.inodesFree 2; "
	const derived = "containerfs.inodesFree 2; "
	for _, c := range []struct {
		version                Version
		upstream, k3s, planned string
	}{
		{v135, "", "", ""},
		{v136, all, derived, derived},
		{v137, all, derived, derived},
	} {
		n := healthy()
		n.Version = c.version
		planned := n.Config
		for want, config := range map[string]*Config{
			"upstream: " + c.upstream: {Hard: DefaultHard(), ConfigFile: true},
			"k3s: " + c.k3s:           {Hard: k3sHard()},
			"planned: " + c.planned:   planned,
		} {
			n.Config = config
			var name string
			fmt.Sscan(want, &name)
			if got := name + " " + linesOf(Examine(n)); got != want {
				t.Errorf("%s: got %q, want %q", c.version, got, want)
			}
		}
	}
}

// Numbers of inodes that mean nothing, as other file systems have them.
func TestInodesThatMeanNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		inodes uint64
		value  string
		met    bool
	}{
		{"none, percent", 0, "5%", false},
		{"none, number", 0, "1k", true},
		{"endless, percent", math.MaxUint64, "5%", true},
		{"endless, number", math.MaxUint64, "1k", true},
	} {
		n := healthy()
		n.Facts.NodeFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib)
		n.Facts.NodeFS.Statfs.Inodes, n.Facts.NodeFS.Statfs.InodesFree = c.inodes, c.inodes
		n.Config.Hard[NodeFSInodes] = Setting{Value: c.value}
		for _, s := range Examine(n).Signals {
			if s.Name == NodeFSInodes && s.Met != c.met {
				t.Errorf("%s: met %t", c.name, s.Met)
			}
		}
	}
}

func signalNamed(t *testing.T, r *Report, name string) Signal {
	t.Helper()
	for _, s := range r.Signals {
		if s.Name == name && !s.Soft {
			return s
		}
	}
	t.Fatalf("there is no %s", name)
	return Signal{}
}

func TestSignals(t *testing.T) {
	n := healthy()
	n.Facts.NodeFS = dataset("tank/kubelet", nodePath, 20*gib, 30*gib, 50*gib, 100*gib)
	n.Config = &Config{
		Hard:           settings(OriginFile, "", map[string]string{NodeFSAvailable: "10%", ImageFSAvailable: "3Gi"}),
		MinimumReclaim: settings(OriginFile, "", map[string]string{NodeFSAvailable: "10%", ImageFSAvailable: "1Gi"}),
	}
	r := Examine(n)
	if *r.NodeFS.Capacity != 220*gib || r.NodeFS.Real != 120*gib || r.NodeFS.Inflation != 1.833 {
		t.Errorf("capacity %+v", r.NodeFS)
	}
	node, image := signalNamed(t, r, NodeFSAvailable), signalNamed(t, r, ImageFSAvailable)
	// 10% of 220 GiB now. With x more written: 100-x < (220+x)/10, so x > 70.9: 29.1 are left.
	if *node.Threshold/gib != 22 || *node.FiresAt/gib != 29 || node.Reclaim/gib != 22 || node.Met {
		t.Errorf("nodefs: %+v, %d, %d", node, *node.Threshold, *node.FiresAt)
	}
	if *image.Threshold != 3*gib || *image.FiresAt != 3*gib || image.Reclaim != gib {
		t.Errorf("imagefs: %+v", image)
	}
	derived := signalNamed(t, r, ContainerFSAvailable)
	if !derived.Derived || derived.Off || *derived.Threshold != 3*gib || derived.Setting.Value != "3Gi" {
		t.Errorf("containerfs: %+v", derived)
	}
	if inodes := signalNamed(t, r, ContainerFSInodes); !inodes.Off || inodes.Threshold != nil {
		t.Errorf("containerfs inodes: %+v", inodes)
	}

	// Up to 1.35 the capacity is right, and inodes are made of bytes.
	n.Version = v135
	n.Config.Hard[NodeFSInodes] = Setting{Value: "5%"}
	r = Examine(n)
	if node := signalNamed(t, r, NodeFSAvailable); *node.Threshold/gib != 12 || *node.FiresAt != *node.Threshold {
		t.Errorf("1.35: %+v", node)
	}
	if inodes := signalNamed(t, r, NodeFSInodes); *inodes.FiresAt/512 != 52 { // 1000 objects × 5/95
		t.Errorf("1.35 inodes: %d", *inodes.FiresAt)
	}
}

func TestWithoutConfiguration(t *testing.T) {
	n := healthy()
	n.Config = nil
	r := Examine(n)
	if len(r.Signals) != 0 || len(r.Lines) != 0 || len(r.Findings) != 0 || r.Plan == nil {
		t.Errorf("%+v", r)
	}
}

func TestThatDoesNotStart(t *testing.T) {
	for name, set := range map[string]func(*Node){
		"no program": func(n *Node) { n.Facts.Host.ZFSProgram = "" },
		"1.36.0":     func(n *Node) { n.Version = v1360 },
		"a bad value": func(n *Node) {
			n.Config.Soft = map[string]Setting{NodeFSAvailable: {Value: "5Gi"}} // and no period
		},
	} {
		n := healthy()
		set(&n)
		if r := Examine(n); r.StartError == "" || len(r.Lines) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// With images alone on a dataset that is not seen, it starts and evicts nothing.
	n := healthy()
	n.Facts.NodeFS = ext4("/dev/sda1", nodePath, 100*gib, 50*gib)
	n.Facts.Host.ZFSProgram = ""
	if r := Examine(n); r.StartError != "" || r.EvictionError == "" || len(r.Lines) != 2 {
		t.Errorf("images alone: %+v", r)
	}
}

func TestImageGC(t *testing.T) {
	n := capacityBug()
	gc := Examine(n).ImageGC
	if !gc.Runs || gc.UsedPercent != 93 || gc.RealPercent != 20 || gc.Off {
		t.Errorf("with the capacity wrong: %+v", gc)
	}
	n.Config.ImageGCHighPercent = Setting{Value: "100"}
	if gc := Examine(n).ImageGC; gc.Runs || !gc.Off {
		t.Errorf("switched off: %+v", gc)
	}
	n.Config.ImageMaximumGCAge = Setting{Value: "168h"}
	if gc := Examine(n).ImageGC; gc.Runs || gc.Off {
		t.Errorf("by age: %+v", gc)
	}
	n.Config.ImageGCHighPercent = Setting{}
	n.Version = v135
	if gc := Examine(n).ImageGC; gc.Runs || gc.UsedPercent != 20 {
		t.Errorf("with the capacity right: %+v", gc)
	}
	n.Facts.ImageFS.Statfs.Capacity = 0
	if gc := Examine(n).ImageGC; gc.Runs || gc.UsedPercent != -1 {
		t.Errorf("without a capacity: %+v", gc)
	}
}
