package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tarn-kv/tarn/zfs"
)

// unitFiles are where the installed service is, and where it is added to.
type unitFiles struct {
	installed string // the unit of the package
	dropIn    string // what tarn init adds
	running   string // there while systemd runs
}

var systemUnit = unitFiles{
	installed: "/usr/lib/systemd/system/tarn.service",
	dropIn:    "/etc/systemd/system/tarn.service.d/tarn-init.conf",
	running:   "/run/systemd/system",
}

// serviceSteps let the installed service write to a directory other than its own, and start after
// that is mounted. Without the installed service, or for the directory that it has, there are none.
func (f unitFiles) serviceSteps(opts initOptions, mountpoint string) ([]initStep, error) {
	if opts.configFile != installedConfigFile || mountpoint == installedDataDir {
		return nil, nil
	}
	if _, err := os.Stat(f.installed); err != nil {
		return nil, nil
	}
	// A blank ends a path there, and a percent sign begins a specifier.
	if strings.ContainsAny(mountpoint, " \t\n%\"'\\") {
		return nil, withExit(exitRefused, fmt.Errorf("--mountpoint %q can not be written into a unit of systemd; "+
			"choose a path without blanks, quotes, backslashes and percent signs", mountpoint))
	}
	lines := []string{"[Unit]", "RequiresMountsFor=" + mountpoint, "[Service]", "ReadWritePaths=-" + mountpoint}
	text := []byte(strings.Join(lines, "\n") + "\n")
	has, err := os.ReadFile(f.dropIn)
	switch {
	case err == nil && bytes.Equal(has, text):
		return nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, withAdvice(err, "it must be readable by "+whoRuns())
	}
	dir := filepath.Dir(f.dropIn)
	steps := []initStep{
		{zfs.CommandLine([]string{"mkdir", "-p", dir}),
			func(context.Context) error { return os.MkdirAll(dir, 0o755) }},
		{zfs.CommandLine(append([]string{"printf", `%s\n`}, lines...)) + " >" + zfs.CommandLine([]string{f.dropIn}),
			func(context.Context) error { return replaceFile(f.dropIn, text) }},
	}
	if _, err := os.Stat(f.running); err == nil {
		command := []string{"systemctl", "daemon-reload"}
		steps = append(steps, initStep{zfs.CommandLine(command), func(ctx context.Context) error {
			if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("systemctl daemon-reload: %w: %s", err, bytes.TrimSpace(out))
			}
			return nil
		}})
	}
	return steps, nil
}

// next is what to do after tarn init.
func (f unitFiles) next(opts initOptions) string {
	if _, err := os.Stat(f.installed); err == nil && opts.configFile == installedConfigFile {
		return "systemctl enable --now tarn.socket"
	}
	return fmt.Sprintf("tarn serve --config-file %s as %s", opts.configFile, opts.user)
}
