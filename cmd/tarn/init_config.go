package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs"
)

// configSteps are what makes a server that is started with the configuration file use
// the dataset. Lines are only added at its end: all else in it stays as it is. A
// file that says something else is refused, since somebody relies on that.
func configSteps(path, mountpoint, dataset string) ([]initStep, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--config-file: %w", withAdvice(err, "it must be readable by "+whoRuns()))
	}
	has, err := configValues(path, text)
	if err != nil {
		return nil, withExit(exitRefused, err)
	}
	var add []string
	switch dir, ok := has["data-dir"]; {
	case !ok:
		add = append(add, "data-dir: "+yamlText(mountpoint))
	case !filepath.IsAbs(dir) || !isBelow(mountpoint, dir):
		return nil, withExit(exitRefused, fmt.Errorf("the configuration file %s has data-dir: %s, which is not in %s; "+
			"take the line out, or mount the dataset there with --mountpoint", path, dir, mountpoint))
	}
	switch other, ok := has["dataset"]; {
	case !ok:
		add = append(add, "dataset: "+yamlText(dataset))
	case other != dataset:
		return nil, withExit(exitRefused, fmt.Errorf("the configuration file %s has dataset: %s; "+
			"take the line out if the server is to use %s instead", path, other, dataset))
	}
	if len(add) == 0 {
		return nil, nil
	}
	after := bytes.Clone(text)
	if len(after) > 0 && !bytes.HasSuffix(after, []byte("\n")) {
		after = append(after, '\n')
	}
	after = append(after, strings.Join(add, "\n")+"\n"...)
	// Not every form of a file can be added to.
	if got, err := configValues(path, after); err != nil || got["dataset"] != dataset || !isBelow(mountpoint, got["data-dir"]) {
		return nil, withExit(exitRefused, fmt.Errorf("lines can not be added to the configuration file %s as it is; write into it: %s", path, strings.Join(add, " and ")))
	}
	return appendSteps(path, add, after), nil
}

func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// yamlText quotes what YAML might take for something else than text.
func yamlText(s string) string {
	if strings.ContainsAny(s, " :#'\"") {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return s
}

// configValues reads the settings of tarn serve in a configuration file.
func configValues(path string, text []byte) (map[string]string, error) {
	opts := defaultServeOptions()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	opts.register(flags)
	entries, err := parseConfigFile(path, text, flags)
	values := map[string]string{}
	for _, e := range entries {
		values[e.key] = e.value
	}
	return values, err
}

func appendSteps(path string, add []string, after []byte) (steps []initStep) {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		steps = append(steps, initStep{zfs.CommandLine([]string{"mkdir", "-p", dir}),
			func(context.Context) error { return os.MkdirAll(dir, 0o755) }})
	}
	show := zfs.CommandLine(append([]string{"printf", `%s\n`}, add...)) + " >>" + zfs.CommandLine([]string{path})
	return append(steps, initStep{show, func(context.Context) error { return replaceFile(path, after) }})
}

// replaceFile gives a file new content, all of it or nothing, and keeps its mode and owner.
func replaceFile(path string, content []byte) (err error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	defer f.Close()
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
