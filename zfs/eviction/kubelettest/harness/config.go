package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// testHost makes validation pass on any machine: it looks at the cgroups of the one that
// it runs on, and at settings that belong together and are not those of this file.
const testHost = "failCgroupV1: false\n"

// Load writes a KubeletConfiguration to a file in dir, and decodes and validates it as
// the kubelet does with --config. A key that the kubelet does not know is an error.
func Load(ctx context.Context, dir, text string) (*kubeletconfig.KubeletConfiguration, error) {
	file := filepath.Join(dir, "kubelet.conf")
	if !strings.Contains(text, "failCgroupV1") {
		text = strings.TrimSuffix(text, "\n") + "\n" + testHost
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, file)
	if err != nil {
		return nil, err
	}
	var lines []string
	var c *kubeletconfig.KubeletConfiguration
	logged := capture(func() { c, err = loader.Load(ctx) })
	for _, l := range logged {
		lines = append(lines, l.Text)
	}
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	// The kubelet falls back to a lenient decoder and says so.
	if text := strings.Join(lines, "\n"); strings.Contains(text, "lenient") {
		return nil, errors.New("decode strictly: " + text)
	}
	if err := validation.ValidateKubeletConfiguration(c, utilfeature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	return c, nil
}

// ConfigOf is what package eviction has to know of a configuration.
func ConfigOf(kc *kubeletconfig.KubeletConfiguration) *eviction.Config {
	c := &eviction.Config{
		Hard: settings(kc.EvictionHard), Soft: settings(kc.EvictionSoft), SoftGracePeriod: settings(kc.EvictionSoftGracePeriod),
		MinimumReclaim: settings(kc.EvictionMinimumReclaim), ConfigFile: true,
	}
	if kc.EvictionHard == nil {
		c.Hard = eviction.DefaultHard()
	}
	set := func(to *eviction.Setting, value string) {
		*to = eviction.Setting{Value: value, Origin: eviction.OriginFile}
	}
	set(&c.ImageGCHighPercent, strconv.Itoa(int(kc.ImageGCHighThresholdPercent)))
	set(&c.ImageGCLowPercent, strconv.Itoa(int(kc.ImageGCLowThresholdPercent)))
	if age := kc.ImageMaximumGCAge.Duration; age > 0 {
		set(&c.ImageMaximumGCAge, age.String())
	}
	return c
}
