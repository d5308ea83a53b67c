package eviction

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs"
)

// valueIn is the planned value of a hard threshold.
func valueIn(t *testing.T, p *Plan, signal string) Amount {
	t.Helper()
	for _, a := range p.Hard {
		if a.Signal == signal {
			return a
		}
	}
	t.Fatalf("the plan has no %s", signal)
	return Amount{}
}

func TestPlanSizes(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         func(*Node)
		node, image string // with the reason
	}{
		{"a pool for both", func(*Node) {}, "6Gi: 5% of the pool tank (120 GiB)", "9Gi: more than nodefs.available, since both share the pool tank"},
		{"a small pool", func(n *Node) { pools(n, 10*gib, 8*gib) }, "1Gi: 1Gi, the least, for the pool tank (10 GiB)", "2Gi: more"},
		{"a large pool", func(n *Node) { pools(n, 4000*gib, 3000*gib) }, "10Gi: 10Gi, the most, for the pool tank (3.9 TiB)", "15Gi: more"},
		{"a quota of images", func(n *Node) { n.Facts.ImageFS.Dataset.Quota = 40 * gib },
			"2Gi: 5% of the quota of tank/containerd (40 GiB)", "3Gi: more"},
		{"a refquota of pods", func(n *Node) { n.Facts.NodeFS.Dataset.RefQuota = 60 * gib },
			"3Gi: 5% of the refquota of tank/kubelet (60 GiB)", "4608Mi: more"},
		{"a quota above", func(n *Node) {
			d := n.Facts.ImageFS.Dataset
			d.Ancestors = append([]zfs.Space{{Name: "tank/k8s", Quota: 50 * gib}}, d.Ancestors...)
		}, "2560Mi: 5% of the quota of tank/k8s (50 GiB)", "3840Mi: more"},
		{"a quota larger than the pool", func(n *Node) { n.Facts.ImageFS.Dataset.Quota = 900 * gib }, "6Gi: 5% of the pool tank (120 GiB)", "9Gi: more"},
		{"two pools", func(n *Node) {
			n.Facts.ImageFS = dataset("fast/containerd", imagePath, 10*gib, 0, 0, 49*gib)
		}, "6Gi: 5% of the pool tank (120 GiB)", "3Gi: 5% of the pool fast (60 GiB)"},
		{"images elsewhere", func(n *Node) { n.Facts.ImageFS = ext4("/dev/sda1", imagePath, 50*gib, 20*gib) },
			"6Gi: 5% of the pool tank (120 GiB)", "2560Mi: 5% of the size of /dev/sda1 (50 GiB)"},
		{"one disk without ZFS", func(n *Node) {
			n.Facts.NodeFS, n.Facts.ImageFS = ext4("/dev/sda1", nodePath, 50*gib, 20*gib), ext4("/dev/sda1", imagePath, 50*gib, 20*gib)
		}, "2560Mi: 5% of the size of /dev/sda1 (50 GiB)", "3840Mi: more than nodefs.available, since both share /dev/sda1"},
		{"zfs does not answer", unanswered, "5376Mi: 5% of the size of tank/kubelet (105 GiB)", "8064Mi: more than nodefs.available, since both share the pool tank"},
	} {
		n := healthy()
		c.set(&n)
		p, err := NewPlan(n)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for signal, want := range map[string]string{NodeFSAvailable: c.node, ImageFSAvailable: c.image} {
			a := valueIn(t, p, signal)
			if got := a.Value + ": " + a.Reason; !strings.HasPrefix(got, want) {
				t.Errorf("%s, %s: %q, want %q", c.name, signal, got, want)
			}
		}
		reclaim := p.MinimumReclaim[1]
		if reclaim.Signal != NodeFSAvailable || reclaim.Bytes != valueIn(t, p, NodeFSAvailable).Bytes/4 {
			t.Errorf("%s: %+v to reclaim", c.name, reclaim)
		}
	}
}

// pools makes the pool of both datasets have a size, with so much of it available.
func pools(n *Node, size, available uint64) {
	for _, f := range []*FS{&n.Facts.NodeFS, &n.Facts.ImageFS} {
		f.Dataset.Available = available
		f.Dataset.Ancestors = []zfs.Space{{Name: "tank", Used: size - available, Available: available}}
	}
}

func TestPlanRefuses(t *testing.T) {
	n := healthy()
	pools(&n, 120*gib, 18*gib) // 9Gi are half of it
	if _, err := NewPlan(n); !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), imagePath) || !strings.Contains(err.Error(), "18 GiB") {
		t.Error(err)
	}
	pools(&n, 120*gib, 18*gib+1)
	if _, err := NewPlan(n); err != nil {
		t.Error(err)
	}
	n.Facts.NodeFS = FS{Path: nodePath}
	if _, err := NewPlan(n); !errors.Is(err, ErrUnknownSize) || !strings.Contains(err.Error(), nodePath) {
		t.Error(err)
	}
	if r := Examine(n); r.Plan != nil || r.PlanError == "" {
		t.Errorf("%+v", r.Plan)
	}
}

// A plan that is in force must lead to itself, or each look at the node would propose
// something else.
func TestPlanIsStable(t *testing.T) {
	for _, n := range []Node{healthy(), capacityBug(), trapped("images are removed for nothing"), trapped("containerfs")} {
		n.Config.Soft = settings(OriginFile, "", map[string]string{ImageFSInodes: "5%", NodeFSAvailable: "10%"})
		n.Config.Hard[MemoryAvailable] = Setting{Value: "250Mi", Origin: OriginDropIn}
		first, err := NewPlan(n)
		if err != nil {
			t.Fatal(err)
		}
		n.Config = first.Over(n.Config, "90-tarn-zfs.conf")
		second, err := NewPlan(n)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%v\nfirst %+v\nthen %+v", err, first, second)
		}
	}
}

func trapped(name string) Node {
	n := healthy()
	for _, trap := range traps {
		if trap.name == name {
			trap.set(&n)
			return n
		}
	}
	panic("no trap " + name)
}

func TestPlanKeepsAndSwitchesOff(t *testing.T) {
	n := healthy()
	n.Config = &Config{
		Hard: settings(OriginDropIn, "", map[string]string{MemoryAvailable: "1Gi", ContainerFSInodes: "5%"}),
		Soft: settings(OriginDropIn, "", map[string]string{NodeFSInodes: "10%", NodeFSAvailable: "20%"}),
	}
	p, err := NewPlan(n)
	if err != nil {
		t.Fatal(err)
	}
	for signal, want := range map[string]string{MemoryAvailable: "1Gi", NodeFSInodes: "0%", ImageFSInodes: "0%", ContainerFSInodes: "0%"} {
		if got := valueIn(t, p, signal).Value; got != want {
			t.Errorf("%s is %s, want %s", signal, got, want)
		}
	}
	if len(p.Soft) != 1 || p.Soft[0].Signal != NodeFSInodes || p.Soft[0].Value != "0%" {
		t.Errorf("soft: %+v", p.Soft)
	}
	over := p.Over(n.Config, "f")
	if over.Soft[NodeFSAvailable].Value != "20%" || n.Config.Soft[NodeFSInodes].Value != "10%" || len(n.Config.Hard) != 2 {
		t.Errorf("over %+v, and before %+v", over, n.Config)
	}
	n.Config.Hard[NodeFSAvailable] = Setting{Value: "5%", Origin: OriginFlag}
	if over := p.Over(n.Config, "f"); over.Hard[NodeFSAvailable].Value != "5%" || over.MinimumReclaim[NodeFSAvailable].Value == "" {
		t.Errorf("over a flag: %+v", over)
	}
}

func TestPlanOfImageGC(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Node)
		want string // part of the reason, "" for no plan
	}{
		{"a dataset of its own", func(*Node) {}, ""},
		{"snapshots that never go", func(n *Node) { *n = capacityBug() }, "snapshots and datasets below tank/k8s"},
		{"counted twice", func(n *Node) { n.Facts.ImageFS = dataset("tank/c", imagePath, 300*gib, 0, 0, 100*gib) }, "although there is room"},
		{"really full", func(n *Node) {
			n.Facts.ImageFS = dataset("tank/c", imagePath, 800*gib, 0, 0, 100*gib)
		}, ""},
		{"up to 1.35", func(n *Node) { *n = capacityBug(); n.Version = v135 }, ""},
		{"without zfs", func(n *Node) { *n = capacityBug(); n.Facts.Host.DevZFS = false }, ""},
		{"switched off by hand", func(n *Node) {
			*n = capacityBug()
			n.Config.ImageGCHighPercent = Setting{Value: "100"}
		}, ""},
	} {
		n := healthy()
		c.set(&n)
		p, err := NewPlan(n)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		switch gc := p.ImageGC; {
		case gc == nil && c.want != "", gc != nil && (c.want == "" || !strings.Contains(gc.Reason, c.want)):
			t.Errorf("%s: %+v, want %q", c.name, gc, c.want)
		case gc != nil && (gc.HighPercent != 100 || gc.MaximumAge != "168h"):
			t.Errorf("%s: %+v", c.name, gc)
		}
	}
}

func TestKubeletConfiguration(t *testing.T) {
	n := capacityBug()
	p, err := NewPlan(n)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for line := range strings.Lines(p.KubeletConfiguration()) {
		if text := strings.TrimRight(line, "\n"); !strings.HasPrefix(strings.TrimSpace(text), "#") {
			values = append(values, text)
		}
	}
	want := `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard:
  memory.available: "100Mi"
  nodefs.available: "10Gi"
  imagefs.available: "15Gi"
  nodefs.inodesFree: "0%"
  imagefs.inodesFree: "0%"
evictionMinimumReclaim:
  memory.available: "0Mi"
  nodefs.available: "2560Mi"
  imagefs.available: "3840Mi"
imageGCHighThresholdPercent: 100
imageMaximumGCAge: "168h"`
	if got := strings.Join(values, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	flags := fmt.Sprint(p.Flags())
	if flags != "[eviction-hard=memory.available<100Mi,nodefs.available<10Gi,imagefs.available<15Gi "+
		"eviction-minimum-reclaim=memory.available=0Mi,nodefs.available=2560Mi,imagefs.available=3840Mi]" {
		t.Error(flags)
	}
}
