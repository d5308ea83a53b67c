package difftest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Environment variables that steer a run.
const (
	EnvEtcdBin    = "ETCD_BIN"        // ready etcd 3.7.3 binary; built when empty
	EnvEtcdutlBin = "ETCDUTL_BIN"     // ready etcdutl 3.7.3 binary; built when empty
	EnvTarnBin    = "TARN_BIN"        // ready tarn binary; built when empty
	EnvSelf       = "TARN_DIFF_SELF"  // "1": compare etcd with a second etcd
	EnvSteps      = "TARN_DIFF_STEPS" // number of random requests
	EnvSeed       = "TARN_DIFF_SEED"  // seed of the random requests
)

// Binaries are the programs under comparison.
type Binaries struct {
	Etcd    string // the oracle
	Etcdutl string // reads and restores snapshot files
	Subject string // tarn, or etcd again in a self-check
	Self    bool   // the subject is a second etcd
}

// FindBinaries takes each binary from its environment variable or builds it
// into dir. The etcd version is the one named in go.mod.
func FindBinaries(dir string) (Binaries, error) {
	b := Binaries{Self: os.Getenv(EnvSelf) == "1"}
	var err error
	if b.Etcd, err = findOrBuild(EnvEtcdBin, dir, "etcd", ".", "go.etcd.io/etcd/server/v3"); err != nil {
		return b, err
	}
	if b.Etcdutl, err = findOrBuild(EnvEtcdutlBin, dir, "etcdutl", ".", "go.etcd.io/etcd/etcdutl/v3"); err != nil {
		return b, err
	}
	if b.Self {
		b.Subject = b.Etcd
		return b, nil
	}
	b.Subject, err = findOrBuild(EnvTarnBin, dir, "tarn", "../../..", "./cmd/tarn")
	return b, err
}

func findOrBuild(env, dir, name, from, pkg string) (string, error) {
	if path := os.Getenv(env); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s names no usable binary: %w", env, err)
		}
		return path, nil
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = from
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s from %s: %w\n%s(set %s to use a ready binary)", name, pkg, err, out, env)
	}
	return path, nil
}
