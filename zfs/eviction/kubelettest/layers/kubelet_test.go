package layers

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"

	"github.com/spf13/pflag"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	conversion "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	"k8s.io/kubernetes/pkg/util/filesystem"
)

// inForce is what the kubelet has after reading everything.
type inForce struct {
	hard, soft, reclaim map[string]string
	imageGCHigh         int32
}

func (a inForce) equal(b inForce) bool {
	return maps.Equal(a.hard, b.hard) && maps.Equal(a.soft, b.soft) && maps.Equal(a.reclaim, b.reclaim) && a.imageGCHigh == b.imageGCHigh
}

// readAsKubelet reads a file, a directory and flags with the kubelet's loaders, conversions, patches and flag types. The
// steps between them are those of its command, which can not be imported without all of the kubelet.
func readAsKubelet(ctx context.Context, file, dir string, args []string) (inForce, error) {
	c, err := fromFile(ctx, file)
	if err != nil {
		return inForce{}, err
	}
	if dir != "" {
		if c, err = withDropIns(c, dir); err != nil {
			return inForce{}, err
		}
	}
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags.Var(cliflag.NewLangleSeparatedMapStringString(&c.EvictionHard), "eviction-hard", "")
	flags.Var(cliflag.NewLangleSeparatedMapStringString(&c.EvictionSoft), "eviction-soft", "")
	flags.Var(cliflag.NewMapStringString(&c.EvictionMinimumReclaim), "eviction-minimum-reclaim", "")
	flags.Int32Var(&c.ImageGCHighThresholdPercent, "image-gc-high-threshold", c.ImageGCHighThresholdPercent, "")
	err = flags.Parse(args)
	return inForce{c.EvictionHard, c.EvictionSoft, c.EvictionMinimumReclaim, c.ImageGCHighThresholdPercent}, err
}

// fromFile is the configuration of --config, "" for none, with the built-in thresholds.
func fromFile(ctx context.Context, file string) (*config.KubeletConfiguration, error) {
	if file == "" {
		return toInternal(&v1beta1.KubeletConfiguration{})
	}
	loader, err := configfiles.NewFsLoader(&filesystem.DefaultFs{}, file)
	if err != nil {
		return nil, err
	}
	c, err := loader.Load(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case c.EvictionHard == nil:
		c.EvictionHard = maps.Clone(eviction.DefaultEvictionHard)
	case c.MergeDefaultEvictionSettings:
		with := maps.Clone(eviction.DefaultEvictionHard)
		maps.Copy(with, c.EvictionHard)
		c.EvictionHard = with
	}
	return c, nil
}

// toInternal sets what is not set and converts.
func toInternal(from *v1beta1.KubeletConfiguration) (*config.KubeletConfiguration, error) {
	conversion.SetDefaults_KubeletConfiguration(from)
	to := &config.KubeletConfiguration{}
	return to, conversion.Convert_v1beta1_KubeletConfiguration_To_config_KubeletConfiguration(from, to, nil)
}

func withDropIns(c *config.KubeletConfiguration, dir string) (*config.KubeletConfiguration, error) {
	versioned := &v1beta1.KubeletConfiguration{}
	if err := conversion.Convert_config_KubeletConfiguration_To_v1beta1_KubeletConfiguration(c, versioned, nil); err != nil {
		return nil, err
	}
	merged, err := json.Marshal(versioned)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".conf" {
			return err
		}
		loader, err := configfiles.NewFsLoader(&filesystem.DefaultFs{}, path)
		if err != nil {
			return err
		}
		patch, kind, err := loader.LoadIntoJSON()
		if err != nil {
			return err
		}
		if kind == nil || *kind != v1beta1.SchemeGroupVersion.WithKind("KubeletConfiguration") {
			return errors.New("no KubeletConfiguration: " + path)
		}
		merged, err = jsonpatch.MergePatch(merged, patch)
		return err
	})
	if err != nil {
		return nil, err
	}
	versioned = &v1beta1.KubeletConfiguration{}
	if err := json.Unmarshal(merged, versioned); err != nil {
		return nil, err
	}
	return toInternal(versioned)
}
