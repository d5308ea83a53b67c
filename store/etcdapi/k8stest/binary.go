package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Environment variables that steer a run.
const (
	EnvTarnBin = "TARN_BIN"      // ready tarn binary; built when empty
	EnvEtcdBin = "ETCD_BIN"      // ready etcd 3.7 binary for a self-check; built when empty
	EnvSelf    = "TARN_K8S_SELF" // "1": run the tests with a real etcd
)

// Environment variables that tell the package embed in etcdserver which server
// to start.
const (
	envServer     = "TARN_K8S_SERVER"
	envServerKind = "TARN_K8S_SERVER_KIND"
)

// server is the program under test.
type server struct {
	kind string // "tarn" or "etcd"
	path string // absolute
}

// findServer takes the binary from its environment variable or builds it into
// dir.
func findServer(dir string) (server, error) {
	s := server{kind: "tarn"}
	env, from, pkg := EnvTarnBin, "../../..", "./cmd/tarn"
	if os.Getenv(EnvSelf) == "1" {
		s.kind = "etcd"
		// This module has etcd's server replaced; the one beside it has not.
		env, from, pkg = EnvEtcdBin, "../difftest", "go.etcd.io/etcd/server/v3"
	}
	s.path = os.Getenv(env)
	if s.path == "" {
		s.path = filepath.Join(dir, s.kind)
		cmd := exec.Command("go", "build", "-o", s.path, pkg)
		cmd.Dir = from
		if out, err := cmd.CombinedOutput(); err != nil {
			return s, fmt.Errorf("build %s from %s: %w\n%s(set %s to use a ready binary)", s.kind, pkg, err, out, env)
		}
	}
	var err error
	if s.path, err = filepath.Abs(s.path); err != nil {
		return s, err
	}
	if _, err = os.Stat(s.path); err != nil {
		return s, fmt.Errorf("%s names no usable binary: %w", env, err)
	}
	return s, nil
}
