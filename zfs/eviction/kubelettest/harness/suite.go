package harness

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// Suite holds what package eviction foretells for a version of the kubelet against the
// kubelet's code, which must be of that version.
func Suite(t *testing.T, version string) {
	v, err := eviction.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Table", func(t *testing.T) {
		for _, c := range Table(v) {
			t.Run(c.Name, func(t *testing.T) { check(t, c.Node) })
		}
	})
	t.Run("Quantities", func(t *testing.T) { quantities(t, v) })
	t.Run("Random", func(t *testing.T) { randomNodes(t, v) })
	t.Run("Plan", func(t *testing.T) { plans(t, v) })
	t.Run("FiresAt", func(t *testing.T) { firesAt(t, v) })
	t.Run("CapacityBug", func(t *testing.T) { capacityBug(t, v) })
	t.Run("ImageGC", func(t *testing.T) { imageGC(t, v) })
}

// check holds one report against the kubelet's code.
func check(t *testing.T, n eviction.Node) (*eviction.Report, *Outcome) {
	t.Helper()
	r := eviction.Examine(n)
	o, err := RunNode(t.Context(), n, r)
	for _, d := range Differences(n, r, o, err) {
		t.Error(d)
	}
	return r, o
}

// seed is that of SEED, or a new one. It is printed.
func seed(t *testing.T) uint64 {
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d", n)
	return n
}

func randomNodes(t *testing.T, v eviction.Version) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	started, pressed := 0, 0
	for i := range 2000 {
		n := random(r, v)
		report, o := check(t, n)
		if t.Failed() {
			t.Fatalf("node %d: %+v with %+v", i, n.Facts, n.Config)
		}
		if report.StartError == "" {
			started++
			if o.DiskPressure {
				pressed++
			}
		}
	}
	t.Logf("%d of 2000 kubelets start, %d of them under pressure", started, pressed)
	if started < 200 || pressed < 50 || pressed == started {
		t.Error("the random nodes are too much alike to show anything")
	}
}

// plans decodes each plan strictly, and holds that it protects and does not harm.
func plans(t *testing.T, v eviction.Version) {
	for _, c := range filesystems(v) {
		n := c.Node
		n.Facts.NodeFS, n.Facts.ImageFS = emptied(n.Facts.NodeFS), emptied(n.Facts.ImageFS)
		t.Run(c.Name, func(t *testing.T) {
			plan, err := eviction.NewPlan(n)
			if err != nil {
				t.Fatal(err)
			}
			kc, err := Load(t.Context(), t.TempDir(), plan.KubeletConfiguration())
			if err != nil {
				t.Fatalf("%v\n%s", err, plan.KubeletConfiguration())
			}
			n.Config = ConfigOf(kc)
			if _, o := check(t, n); o.DiskPressure || o.Evicted || o.ImagesPruned {
				t.Errorf("with room: %+v", o)
			}
			for _, low := range plan.Hard {
				if low.Bytes == 0 || low.Signal == eviction.MemoryAvailable {
					continue
				}
				n := n
				fs := &n.Facts.NodeFS
				if low.Signal == eviction.ImageFSAvailable {
					fs = &n.Facts.ImageFS
				}
				single := n.Facts.NodeFS.Source == n.Facts.ImageFS.Source
				*fs = filled(*fs, low.Bytes-1)
				if single {
					n.Facts.NodeFS, n.Facts.ImageFS = *fs, *fs
				}
				if _, o := check(t, n); !o.DiskPressure {
					t.Errorf("%s with a byte less than %s: %+v", low.Signal, low.Value, o)
				}
			}
		})
	}
}

// filled is a file system that has written until available bytes are left.
func filled(f eviction.FS, available uint64) eviction.FS {
	if f.Dataset == nil {
		f.Statfs.Available = available
		return f
	}
	d := f.Dataset
	return dataset(d.Name, f.Path, space{d.UsedByDataset + d.Available - available, d.UsedBySnapshots, d.UsedByChildren, available})
}

// firesAt fills datasets up to where percentages are foretold to fire.
func firesAt(t *testing.T, v eviction.Version) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	for range 200 {
		s := space{r.Uint64N(100 * gib), r.Uint64N(100 * gib), r.Uint64N(900 * gib), 200*gib + r.Uint64N(900*gib)}
		n := one(v, dataset("tank/k8s", kubeletDir, s))
		share := fmt.Sprintf("%d%%", 1+r.IntN(14))
		n.Config = &eviction.Config{Hard: settings(map[string]string{"nodefs.available": share})}
		at := uint64(0)
		for _, signal := range eviction.Examine(n).Signals {
			if signal.Name == eviction.NodeFSAvailable {
				at = *signal.FiresAt
			}
		}
		for _, step := range []struct {
			available uint64
			fires     bool
		}{{at + 1<<20, false}, {at - 1<<20, true}} {
			n := one(v, filled(n.Facts.NodeFS, step.available))
			n.Config = &eviction.Config{Hard: settings(map[string]string{"nodefs.available": share})}
			if _, o := check(t, n); o.DiskPressure != step.fires {
				t.Fatalf("%s of %+v is foretold to fire at %d; at %d it is %t", share, s, at, step.available, o.DiskPressure)
			}
		}
	}
}

// capacityBug is a dataset with 900 GiB in snapshots and datasets below it and 80 GiB
// free: the kubelet's own thresholds evict from 1.36.1 on, and planned ones do not.
func capacityBug(t *testing.T, v eviction.Version) {
	inflated := eviction.BehaviourOf(v).Capacity == eviction.CapacityInflated
	n := one(v, dataset("tank/k8s", kubeletDir, space{20 * gib, 400 * gib, 500 * gib, 80 * gib}))
	if r, o := check(t, n); o.DiskPressure != inflated || o.Evicted != inflated {
		t.Errorf("with the kubelet's own thresholds: pressure %t, evicted %t; capacity %d", o.DiskPressure, o.Evicted, *r.NodeFS.Capacity)
	}
	plan, err := eviction.NewPlan(n)
	if err != nil {
		t.Fatal(err)
	}
	n.Config = plan.Over(n.Config, "90-tarn-zfs.conf")
	if r, o := check(t, n); o.DiskPressure || o.Evicted {
		t.Errorf("with planned thresholds: pressure %t, evicted %t; capacity %d", o.DiskPressure, o.Evicted, *r.NodeFS.Capacity)
	}
}
