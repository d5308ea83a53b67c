package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Environment variables that steer a run.
const (
	EnvTarnBin = "TARN_BIN"        // ready tarn binary; built when empty
	EnvSelf    = "TARN_TOOLS_SELF" // "1": run the tests with a real etcd
)

// Environment variables for the tests.
const (
	envBin  = "TOOLSTEST_BIN"  // directory of the binaries
	envTree = "TOOLSTEST_TREE" // directory of etcd's tests
)

// testsModule holds etcd's tests, leakModule what they look for goroutines with
// that a test left behind. go.mod says in which versions.
const (
	testsModule = "go.etcd.io/etcd/tests/v3"
	leakModule  = "go.etcd.io/etcd/client/pkg/v3"
)

// workspace is a changed copy of etcd's tests and the programs that they start.
type workspace struct {
	tree, leak, bin string // absolute directories
	server          string // what the tests start as etcd: "tarn" or "etcd"
}

// newWorkspace prepares a workspace in the empty directory dir.
func newWorkspace(ctx context.Context, dir string) (*workspace, error) {
	w := &workspace{tree: filepath.Join(dir, "tests"), leak: filepath.Join(dir, "leak"), bin: filepath.Join(dir, "bin"), server: "tarn"}
	if os.Getenv(EnvSelf) == "1" {
		w.server = "etcd"
	}
	if err := os.Mkdir(w.bin, 0o755); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{w.copyTests, w.patch, w.ownModule, w.build} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// copyTests copies etcd's tests from the module cache, and the files of
// testdata/tests over them.
func (w *workspace) copyTests(ctx context.Context) error {
	for module, to := range map[string]string{testsModule: w.tree, leakModule: w.leak} {
		if _, err := goTool(ctx, ".", "mod", "download", module); err != nil {
			return err
		}
		source, err := goTool(ctx, ".", "list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return err
		}
		if err := copyTree(to, strings.TrimSpace(source)); err != nil {
			return err
		}
	}
	return copyTree(w.tree, filepath.Join("testdata", "tests"))
}

// copyTree copies the files below from to the same places below to; files that
// are there already are replaced.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}

// ownModule makes the copy a module that can be built outside of etcd's
// repository: there, go.mod names the directories beside it, and go.sum lacks
// their hashes, which the go.sum of this directory has.
func (w *workspace) ownModule(ctx context.Context) error {
	args := []string{"mod", "edit", "-toolchain=none", "-droprequire=" + cacheModule, "-dropreplace=" + cacheModule}
	for _, name := range []string{"api", "client/pkg", "client", "etcdctl", "etcdutl", "pkg", "server"} {
		args = append(args, "-dropreplace=go.etcd.io/etcd/"+name+"/v3")
	}
	args = append(args, "-replace="+leakModule+"="+w.leak)
	if _, err := goTool(ctx, w.tree, args...); err != nil {
		return err
	}
	sums := filepath.Join(w.tree, "go.sum")
	theirs, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	ours, err := os.ReadFile("go.sum")
	if err != nil {
		return err
	}
	return os.WriteFile(sums, append(theirs, ours...), 0o644)
}

// build makes the programs that the tests start.
func (w *workspace) build(ctx context.Context) error {
	etcd := "etcd-proxy"
	if w.server == "etcd" {
		etcd = "etcd"
	} else {
		if _, err := goTool(ctx, ".", "build", "-o", filepath.Join(w.bin, "etcd"), "./launcher"); err != nil {
			return err
		}
		if err := w.tarn(ctx); err != nil {
			return err
		}
	}
	for name, pkg := range map[string]string{etcd: "server", "etcdctl": "etcdctl", "etcdutl": "etcdutl"} {
		if _, err := goTool(ctx, w.tree, "build", "-o", filepath.Join(w.bin, name), "go.etcd.io/etcd/"+pkg+"/v3"); err != nil {
			return err
		}
	}
	return nil
}

// tarn takes the binary from its environment variable or builds it.
func (w *workspace) tarn(ctx context.Context) error {
	target := filepath.Join(w.bin, "tarn")
	ready := os.Getenv(EnvTarnBin)
	if ready == "" {
		_, err := goTool(ctx, "../../..", "build", "-o", target, "./cmd/tarn")
		return err
	}
	content, err := os.ReadFile(ready)
	if err != nil {
		return fmt.Errorf("%s names no usable binary: %w", EnvTarnBin, err)
	}
	return os.WriteFile(target, content, 0o755)
}

// goTool runs a go command in a directory and returns its output.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
