//go:build !manual

// Command tarn keeps a Kubernetes control plane's data: a single-node server
// for the etcd v3 API, and the commands to look after it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// From the first signal on the next one has its default effect, so that a
	// person can always end a stop that takes too long.
	context.AfterFunc(ctx, restore)
	os.Exit(execute(ctx, process{
		args:    os.Args[1:],
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		environ: os.Environ(),
	}))
}
