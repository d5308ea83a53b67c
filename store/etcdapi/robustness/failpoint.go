package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// injection is what a failpoint works with.
type injection struct {
	server *server
	rand   *rand.Rand
	log    string // directory of the log's segments
}

// failpoint is one thing that happens to a server. When inject returns, the server
// serves again, on a good disk.
type failpoint struct {
	name   string
	inject func(context.Context, injection) error
}

// processFailpoints happen to the process. Every server can have them.
var processFailpoints = []failpoint{
	{"kill", killed},
	{"kill-twice", killedTwice},
	{"pause", paused},
	{"terminate", terminated},
	{"pause-kill", pausedAndKilled},
	{"defragment", defragmented},
}

// diskFailpoints happen to the disk of a faultserver.
var diskFailpoints = []failpoint{
	{"slow-disk", withDisk("slow 5ms 60ms", nil)},
	{"full-disk", withDisk("full", nil)},
	{"kill-on-slow-disk", withDisk("slow 20ms 100ms", killed)},
	{"little-space", withDisk("room 30000000", nil)},
	{"kill-on-full-disk", withDisk("room 5000", killed)},
	{"stalled-disk", withDisk("slow 1s 2s", nil)},
	{"restart-on-full-disk", restartedOnFullDisk},
	{"kill", killed},
}

// brokenFailpoints are not for a sound server.
var brokenFailpoints = []failpoint{{"cut-log", cutLogAndRestarted}}

// failpointNames lists the failpoints for a sound server.
func failpointNames(faulty bool) []string {
	list := processFailpoints
	if faulty {
		list = diskFailpoints
	}
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.name
	}
	return names
}

func failpointNamed(name string) (failpoint, error) {
	for _, list := range [][]failpoint{processFailpoints, diskFailpoints, brokenFailpoints} {
		for _, f := range list {
			if f.name == name {
				return f, nil
			}
		}
	}
	return failpoint{}, fmt.Errorf("there is no failpoint named %q", name)
}

// killed ends the process as a crash does, and starts it again.
func killed(ctx context.Context, in injection) error {
	if err := in.server.kill(); err != nil {
		return err
	}
	if err := sleep(ctx, between(in.rand, time.Millisecond, time.Second)); err != nil {
		return err
	}
	return in.server.start(ctx)
}

// killedTwice kills the process again while it recovers.
func killedTwice(ctx context.Context, in injection) error {
	if err := in.server.kill(); err != nil {
		return err
	}
	if err := in.server.launch(); err != nil {
		return err
	}
	if err := sleep(ctx, between(in.rand, time.Millisecond, 60*time.Millisecond)); err != nil {
		return err
	}
	return killed(ctx, in)
}

func terminated(ctx context.Context, in injection) error {
	if err := in.server.stop(syscall.SIGTERM); err != nil {
		return err
	}
	return in.server.start(ctx)
}

// paused stops the process for longer than clients wait for an answer.
func paused(ctx context.Context, in injection) error {
	if err := in.server.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := sleep(ctx, between(in.rand, 200*time.Millisecond, 3*time.Second))
	if sigErr := in.server.signal(syscall.SIGCONT); sigErr != nil {
		return sigErr
	}
	if err != nil {
		return err
	}
	return in.server.ready(ctx)
}

func pausedAndKilled(ctx context.Context, in injection) error {
	if err := in.server.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := sleep(ctx, between(in.rand, 200*time.Millisecond, time.Second)); err != nil {
		return err
	}
	return killed(ctx, in)
}

func defragmented(ctx context.Context, in injection) error {
	conn, err := dial(in.server.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{}); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	return nil
}

// withDisk lets the disk be as the command says for some seconds. then, if set,
// follows while it is, and restarts the process with a good disk.
func withDisk(command string, then func(context.Context, injection) error) func(context.Context, injection) error {
	return func(ctx context.Context, in injection) error {
		if err := in.server.command(command); err != nil {
			return err
		}
		if err := sleep(ctx, between(in.rand, time.Second, 4*time.Second)); err != nil {
			return err
		}
		if then != nil {
			return then(ctx, in)
		}
		return in.server.command("good")
	}
}

// restartedOnFullDisk kills the process while the disk is full, and lets it recover on
// the full disk.
func restartedOnFullDisk(ctx context.Context, in injection) error {
	in.server.disk = "full"
	defer func() { in.server.disk = "" }()
	return withDisk("room 5000", func(ctx context.Context, in injection) error {
		if err := killed(ctx, in); err != nil {
			return err
		}
		if err := sleep(ctx, between(in.rand, time.Second, 2*time.Second)); err != nil {
			return err
		}
		return in.server.command("good")
	})(ctx, in)
}

// cutLogAndRestarted kills the process and takes acknowledged writes from its log.
func cutLogAndRestarted(ctx context.Context, in injection) error {
	if err := in.server.kill(); err != nil {
		return err
	}
	if err := cutLog(in.log, 20); err != nil {
		return err
	}
	return in.server.start(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
