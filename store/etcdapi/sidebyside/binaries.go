package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Environment variables that name ready binaries; what is not given is built.
const (
	EnvEtcdBin = "ETCD_BIN" // etcd, by default in the version that go.mod names
	EnvTarnBin = "TARN_BIN" // tarn, by default of this source tree
	// EnvEtcdctlBin is for the workload snapshot alone.
	EnvEtcdctlBin = "ETCDCTL_BIN"
)

// findBinary takes a binary from its environment variable or builds it into dir,
// from the package pkg as the module in the directory from has it.
func findBinary(env, dir, name, from, pkg string) (string, error) {
	if given := os.Getenv(env); given != "" {
		path, err := exec.LookPath(given)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", fmt.Errorf("%s names no usable binary: %w", env, err)
		}
		return path, nil
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Dir = from
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s from %s: %w\n%s(run this in the directory of its go.mod, or set %s to a ready binary)", name, pkg, err, out, env)
	}
	return path, nil
}
