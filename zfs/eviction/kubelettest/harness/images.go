package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/images"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// imageStats tells the collection of images of one file system.
type imageStats struct{ fs FS }

func (s imageStats) ImageFsStats(context.Context) (image, container *statsapi.FsStats, err error) {
	return s.fs.stats(), s.fs.stats(), nil
}

var overThreshold = regexp.MustCompile(`"usage"=([0-9]+) .*"amountToFree"=(-?[0-9]+)`)

// ImageGC is what the collection of images did.
type ImageGC struct {
	Runs bool `json:"runs"`
	// UsedPercent and ToFree, in bytes, are known if it ran.
	UsedPercent int   `json:"usedPercent"`
	ToFree      int64 `json:"toFree"`
}

// CollectImages runs the kubelet's collection of images once, on a runtime without any.
func CollectImages(ctx context.Context, fs FS, high, low int) (*ImageGC, error) {
	m, err := images.NewImageGCManager(&containertest.FakeRuntime{}, imageStats{fs}, nil, &record.FakeRecorder{},
		&v1.ObjectReference{}, images.ImageGCPolicy{HighThresholdPercent: high, LowThresholdPercent: low}, noop.NewTracerProvider())
	if err != nil {
		return nil, err
	}
	gc := &ImageGC{}
	// It says by an error that it freed too little, and by a line that it began.
	for _, l := range capture(func() { _ = m.GarbageCollect(ctx, time.Now()) }) {
		if f := overThreshold.FindStringSubmatch(l.Text); f != nil {
			gc.Runs = true
			if _, err := fmt.Sscan(f[1]+" "+f[2], &gc.UsedPercent, &gc.ToFree); err != nil {
				return nil, err
			}
		}
	}
	return gc, nil
}

func imageGC(t *testing.T, v eviction.Version) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	ran := 0
	for range 500 {
		s := space{r.Uint64N(100 * gib), r.Uint64N(100 * gib), r.Uint64N(100 * gib), r.Uint64N(100 * gib)}
		n := one(v, dataset("tank/k8s", containerdDir, s))
		report := eviction.Examine(n)
		want := report.ImageGC
		gc, err := CollectImages(t.Context(), FS(report.ImageFS.Stats), want.HighPercent, want.LowPercent)
		if err != nil {
			t.Fatal(err)
		}
		if gc.Runs != want.Runs || gc.Runs && (gc.UsedPercent != want.UsedPercent || gc.ToFree != int64(want.ToFree)) {
			t.Fatalf("%+v: foretold is %+v, and it was %+v", s, want, gc)
		}
		if gc.Runs {
			ran++
		}
	}
	if ran == 0 || ran == 500 {
		t.Errorf("it ran %d times of 500", ran)
	}
}
