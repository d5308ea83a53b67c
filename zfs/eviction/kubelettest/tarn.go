package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// checked is the part of what tarn kubelet check prints that is held against the kubelet.
type checked struct {
	Version  eviction.Version  `json:"version"`
	Judged   bool              `json:"judged"`
	Config   *eviction.Config  `json:"config"`
	Facts    *eviction.Facts   `json:"facts"`
	Examined *eviction.Report  `json:"examined"`
	Unseen   []json.RawMessage `json:"unseen"`
}

// runTarn runs kubelet check, as a user does.
func runTarn(ctx context.Context, tarn string) (*checked, error) {
	cmd := exec.CommandContext(ctx, tarn, "kubelet", "check", "--output", "json")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	// Its exit codes tell what it found; that it failed, no report does.
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return nil, err
	}
	var c checked
	if jsonErr := json.Unmarshal(text, &c); jsonErr != nil {
		return nil, fmt.Errorf("%s: %w", cmd, errors.Join(err, jsonErr))
	}
	if c.Facts == nil || c.Examined == nil || !c.Judged || len(c.Unseen) > 0 {
		return nil, fmt.Errorf("%s: it has not seen everything: %s", cmd, c.Unseen)
	}
	if release, _, _ := strings.Cut(c.Version.String(), "+"); release != version {
		return nil, fmt.Errorf("%s: it is about %s, and here is the code of %s", cmd, c.Version, version)
	}
	return &c, nil
}

// lookWithTarn looks at the paths that tarn found, with the PATH that it says the kubelet
// has. config is nil for the one that tarn put together.
func lookWithTarn(ctx context.Context, tarn string, config *eviction.Config) (*result, error) {
	c, err := runTarn(ctx, tarn)
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = c.Config
	}
	own := os.Getenv("PATH")
	if err := os.Setenv("PATH", c.Facts.Host.SearchPath); err != nil {
		return nil, err
	}
	k, err := asKubelet(ctx, c.Facts.NodeFS.Path, c.Facts.ImageFS.Path, config)
	if err := os.Setenv("PATH", own); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	r := &result{Version: version, Kubelet: k, Foretold: c.Examined}
	r.Differences = k.differences(eviction.Node{Version: c.Version, Facts: *c.Facts, Config: c.Config}, c.Examined)
	return r, nil
}
