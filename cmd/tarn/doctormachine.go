package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// machine is the machine that tarn doctor and tarn k3s setup look at. A test has one of its own.
type machine struct {
	nodeconf.Machine
	now func() time.Time
}

func thisMachine() machine {
	m := machine{Machine: nodeconf.MachineAt("/"), now: time.Now}
	m.Run = runProgram
	m.Home, _ = os.UserHomeDir() // "" if there is none
	return m
}

// runProgram runs a program and returns what it prints.
func runProgram(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return stdout.String(), err
}
