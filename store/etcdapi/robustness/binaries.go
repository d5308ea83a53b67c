package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// EnvTarnBin names a ready tarn binary; it is built when empty.
const EnvTarnBin = "TARN_BIN"

// binaries are the paths of the programs under test.
type binaries struct {
	tarn, faultserver string
}

// findBinaries builds the programs into dir.
func findBinaries(dir string) (binaries, error) {
	b := binaries{tarn: os.Getenv(EnvTarnBin)}
	var err error
	if b.tarn == "" {
		b.tarn, err = build(dir, "tarn", "../../..", "./cmd/tarn")
	} else if _, err = os.Stat(b.tarn); err != nil {
		err = fmt.Errorf("%s names no usable binary: %w", EnvTarnBin, err)
	}
	if err == nil {
		b.faultserver, err = build(dir, "faultserver", ".", "./faultserver")
	}
	return b, err
}

func build(dir, name, from, pkg string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = from
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s from %s: %w\n%s(run this in the directory of its go.mod)", name, pkg, err, out)
	}
	return path, nil
}
