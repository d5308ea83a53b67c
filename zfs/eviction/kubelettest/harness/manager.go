package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/utils/clock"
)

// FS is what the kubelet is told of a file system. nil is what it is not told.
type FS struct {
	Capacity, Available, Inodes, InodesFree *uint64
}

func (f FS) stats() *statsapi.FsStats {
	return &statsapi.FsStats{CapacityBytes: f.Capacity, AvailableBytes: f.Available, Inodes: f.Inodes, InodesFree: f.InodesFree}
}

// Settings are the maps of a KubeletConfiguration.
type Settings struct {
	Hard, Soft, SoftGracePeriod, MinimumReclaim map[string]string
}

// Threshold is what the kubelet compares a signal with.
type Threshold struct {
	Signal   string `json:"signal"`
	Soft     bool   `json:"soft"`
	Quantity int64  `json:"quantity"` // bytes or inodes
	Known    bool   `json:"known"`    // there are numbers to compare with
	Empty    bool   `json:"empty"`    // made for containerfs of nothing
}

// Outcome is what the kubelet's code did.
type Outcome struct {
	Thresholds   []Threshold    `json:"thresholds"`
	Lines        map[string]int `json:"lines"` // "no observation" by signal, in one pass after the first
	Others       []string       `json:"others"`
	DiskPressure bool           `json:"diskPressure"`
	Evicted      bool           `json:"evicted"`
	ImagesPruned bool           `json:"imagesPruned"`
}

// passes is how many are run: the first is another one than those that follow, and a
// threshold is acted on in the pass after the one that sees it at the latest.
const passes = 5

// Run parses the settings and runs the kubelet's eviction manager on the two file
// systems, which the kubelet takes for two devices if dedicated is set. An error is one
// with which the kubelet would not start.
func Run(ctx context.Context, s Settings, node, image FS, dedicated bool) (*Outcome, error) {
	parsed, err := parse(s)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Lines: map[string]int{}}
	if o.Thresholds, err = quantitiesOf(s, node, image, dedicated); err != nil {
		return nil, err
	}
	r := &run{outcome: o, node: node, image: image, dedicated: dedicated, done: make(chan struct{})}
	lines := capture(func() { r.manage(ctx, parsed) })
	for _, l := range lines {
		if _, signal, ok := strings.Cut(l.Text, `"Eviction manager: no observation found for eviction signal" "signal"=`); ok {
			if l.Pass == passes {
				o.Lines[strings.Trim(signal, `"`)]++
			}
		} else if l.Pass == passes {
			o.Others = append(o.Others, l.Text)
		}
	}
	return o, nil
}

func parse(s Settings) ([]evictionapi.Threshold, error) {
	return eviction.ParseThresholdConfig([]string{"pods"}, s.Hard, s.Soft, s.SoftGracePeriod, s.MinimumReclaim)
}

// quantitiesOf are the thresholds of disks with what they come to.
func quantitiesOf(s Settings, node, image FS, dedicated bool) ([]Threshold, error) {
	parsed, err := parse(s)
	if err != nil {
		return nil, err
	}
	all, _ := eviction.UpdateContainerFsThresholds(parsed, dedicated, false) // the error is one for the log
	var list []Threshold
	for _, t := range all {
		of, inodes := image, strings.HasSuffix(string(t.Signal), ".inodesFree")
		switch signal := string(t.Signal); {
		case strings.HasPrefix(signal, "nodefs."):
			of = node
		case !strings.HasPrefix(signal, "imagefs.") && !strings.HasPrefix(signal, "containerfs."):
			continue
		}
		capacity := of.Capacity
		if inodes {
			capacity = of.Inodes
		}
		q := Threshold{Signal: string(t.Signal), Soft: t.GracePeriod > 0, Empty: t.Operator == "", Known: capacity != nil}
		if q.Known {
			// Value would be nonsense for what does not fit; the manager compares without it.
			quantity := evictionapi.GetThresholdQuantity(t.Value, resource.NewQuantity(int64(*capacity), resource.BinarySI))
			if q.Quantity = math.MaxInt64; quantity.CmpInt64(math.MaxInt64) < 0 {
				q.Quantity = quantity.Value()
			}
		}
		list = append(list, q)
	}
	// The kubelet has them in the order of a map.
	slices.SortFunc(list, func(a, b Threshold) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list, nil
}

// run is one run of the eviction manager. It plays everything around it.
type run struct {
	outcome     *Outcome
	node, image FS
	dedicated   bool
	manager     eviction.Manager
	done        chan struct{}
}

// manage runs the manager until its passes are over. It paces the manager by itself:
// the manager asks for the pods once in each pass.
func (r *run) manage(ctx context.Context, thresholds []evictionapi.Threshold) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.manager, _ = eviction.NewManager(r, eviction.Config{PressureTransitionPeriod: 5 * time.Minute, Thresholds: thresholds},
		r.kill, r, r, &record.FakeRecorder{}, &v1.ObjectReference{Kind: "Node", Name: "node"}, quickClock{}, true)
	r.manager.Start(ctx, r, r.pods, func(*v1.Pod) bool { return true }, time.Microsecond)
	<-r.done
}

func (r *run) pods() []*v1.Pod {
	if nextPass() == passes+1 {
		r.outcome.DiskPressure = r.manager.IsUnderDiskPressure()
		close(r.done)
		select {} // the manager has no way of being waited for; it stays here
	}
	return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}, Status: v1.PodStatus{Phase: v1.PodRunning}}}
}

func (r *run) kill(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error {
	r.outcome.Evicted = true
	return nil
}

// The two collections, of images and of containers.

func (r *run) DeleteUnusedImages(context.Context) error {
	r.outcome.ImagesPruned = true
	return nil
}

func (r *run) DeleteAllUnusedContainers(context.Context) error { return nil }

// What the kubelet says of its disks.

func (r *run) HasDedicatedImageFs(context.Context) (bool, error) { return r.dedicated, nil }

func (r *run) HasDedicatedContainerFs(context.Context) (bool, error) {
	return false, errors.New("no label for containers: as with containerd")
}

func (r *run) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return r.Get(ctx, true)
}

func (r *run) Get(context.Context, bool) (*statsapi.Summary, error) {
	free, used := uint64(4<<30), uint64(1<<30)
	memory := &statsapi.MemoryStats{AvailableBytes: &free, WorkingSetBytes: &used}
	image := r.image.stats()
	return &statsapi.Summary{Node: statsapi.NodeStats{
		Memory:           memory,
		SystemContainers: []statsapi.ContainerStats{{Name: statsapi.SystemContainerPods, Memory: memory}},
		Fs:               r.node.stats(),
		Runtime:          &statsapi.RuntimeStats{ImageFs: image, ContainerFs: image},
	}}, nil
}

// quickClock looks at once whether an evicted pod is gone.
type quickClock struct{ clock.RealClock }

func (quickClock) NewTicker(time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(time.Microsecond)
}
