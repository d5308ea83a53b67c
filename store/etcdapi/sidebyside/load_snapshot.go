package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	snapshotKeySize = 4096             // bytes of a value
	snapshotTime    = 40 * time.Minute // for a slow machine to write all of it
)

// What can be saved with: each is a case.
const (
	saveWithEtcdctl = "etcdctl snapshot save"
	saveWithTarn    = "tarn snapshot create"
)

// saving is a command that saves a running server's data, such that it can be restored.
// {dir} and {addr} in it are the server's.
type saving struct {
	command []string
	// check tells whether that was done by a command that printed this.
	check func(t *turn, printed string) error
}

// snapshot saves a large store while updates go on.
func snapshot(t *turn) error {
	if err := t.start(); err != nil {
		return err
	}
	keys := newKeyset("/registry/pods/", snapshotKeys(t))
	if err := keys.fill(t.ctx, t.kv(2), snapshotKeySize); err != nil {
		return err
	}
	for _, name := range []string{saveWithEtcdctl, saveWithTarn} {
		t.measure(name, func(set setter) error {
			s, ok := t.spec.savings[name]
			if !ok {
				return status.Error(codes.Unimplemented, "no such command for this server")
			}
			return saveCase(t, s, set)
		})
	}
	return nil
}

// snapshotKeys makes it a store of 1 GB.
func snapshotKeys(t *turn) int { return pick(t, 250_000, 5_000) }

func saveCase(t *turn, s saving, set setter) error {
	f, err := startForeground(t.ctx, t)
	if err != nil {
		return err
	}
	cmd := s.on(t.ctx, t, s.command)
	var printed, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &stderr
	u, err := t.using(func() error {
		f.begin()
		defer f.end()
		if err := cmd.Run(); err != nil {
			said := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			return fmt.Errorf("%s: %w: %s", strings.Join(s.command, " "), err, said[len(said)-1])
		}
		return nil
	})
	if err == nil {
		set("ms", millis(u.wall))
		set("server CPU ms", u.cpuMilli(1))
		set("command CPU ms", millis(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	}
	if err := errors.Join(err, f.report(t.ctx, set)); err != nil {
		return err
	}
	return s.check(t, strings.TrimSpace(printed.String()))
}

// on fills in a command of the saving.
func (saving) on(ctx context.Context, t *turn, command []string) *exec.Cmd {
	replace := strings.NewReplacer("{dir}", t.dir, "{addr}", t.server.addr)
	args := make([]string, len(command))
	for i, word := range command {
		args[i] = replace.Replace(word)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{} // what this program is set by is nothing to it
	return cmd
}

// etcdctlSaving is etcd's own command, which copies the whole store over the network.
func etcdctlSaving(etcdctl string) saving {
	const name = "saved.db"
	return saving{
		command: []string{etcdctl, "--endpoints=http://{addr}", "snapshot", "save", "{dir}/" + name},
		check: func(t *turn, _ string) error {
			info, err := os.Stat(filepath.Join(t.dir, name))
			if want := snapshotKeys(t) * snapshotKeySize; err == nil && info.Size() < int64(want) {
				err = fmt.Errorf("the file has %d bytes, the values alone %d", info.Size(), want)
			}
			return err
		},
	}
}

// tarnSaving is tarn's own command: a snapshot of the file system where that is ZFS.
func tarnSaving(tarn string) saving {
	s := saving{command: []string{tarn, "snapshot", "create", "--data-dir={dir}/tarn", "--endpoint=http://{addr}"}}
	s.check = func(t *turn, printed string) error {
		cmd := s.on(t.ctx, t, []string{tarn, "snapshot", "verify", "--data-dir={dir}/tarn", printed})
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the snapshot is not good: %w: %s", err, out)
		}
		return nil
	}
	return s
}
