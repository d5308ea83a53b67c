package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/kubelettest/harness"
)

// version is that of k8s.io/kubernetes in go.mod.
const version = "v1.37.2"

// looks is how often the disks are looked at before a difference counts: something may
// be written between the kubelet's look and ours.
const looks = 5

func main() {
	same, err := run(context.Background(), os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "kubelettest:", err)
		os.Exit(2)
	case !same:
		os.Exit(1)
	}
}

// result is what is printed.
type result struct {
	Version     string           `json:"version"`
	Kubelet     *kubelet         `json:"kubelet"`
	Foretold    *eviction.Report `json:"foretold"`
	Differences []string         `json:"differences"`
}

// run is the command. same tells that nothing differs.
func run(ctx context.Context, args []string, out io.Writer) (same bool, err error) {
	flags := flag.NewFlagSet("kubelettest", flag.ContinueOnError)
	nodeDir := flags.String("nodefs", "/var/lib/kubelet", "the kubelet's root directory")
	imageDir := flags.String("imagefs", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs", "containerd's directory of snapshots")
	file := flags.String("config", "", "a KubeletConfiguration; without one, the built-in thresholds, or with -tarn those in force")
	tarn := flags.String("tarn", "", "the program tarn: hold what its kubelet check prints, with the paths that it found")
	brief := flags.Bool("brief", false, "print a few lines instead of JSON")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	var config *eviction.Config
	if *file != "" {
		if config, err = readConfig(ctx, *file); err != nil {
			return false, err
		}
	}
	var r *result
	for range looks {
		if *tarn != "" {
			r, err = lookWithTarn(ctx, *tarn, config)
		} else {
			r, err = look(ctx, *nodeDir, *imageDir, config)
		}
		if err != nil {
			return false, err
		}
		if len(r.Differences) == 0 {
			break
		}
	}
	if *brief {
		return len(r.Differences) == 0, r.brief(out)
	}
	printer := json.NewEncoder(out)
	printer.SetIndent("", "  ")
	return len(r.Differences) == 0, printer.Encode(r)
}

// readConfig decodes a file as the kubelet does.
func readConfig(ctx context.Context, file string) (*eviction.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kubelettest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	kc, err := harness.Load(ctx, dir, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return harness.ConfigOf(kc), nil
}

// look looks at the machine once, as the kubelet and as package eviction. config is nil
// for the built-in thresholds.
func look(ctx context.Context, nodeDir, imageDir string, config *eviction.Config) (*result, error) {
	if config == nil {
		config = &eviction.Config{Hard: eviction.DefaultHard(), ConfigFile: true}
	}
	v, err := eviction.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	k, err := asKubelet(ctx, nodeDir, imageDir, config)
	if err != nil {
		return nil, err
	}
	facts, err := eviction.GatherPaths(ctx, nodeDir, imageDir, os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	n := eviction.Node{Version: v, Facts: *facts, Config: config}
	r := &result{Version: version, Kubelet: k, Foretold: eviction.Examine(n)}
	r.Differences = k.differences(n, r.Foretold)
	return r, nil
}
