package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// turnTimeout ends a turn that hangs, if its workload has no limit of its own.
const turnTimeout = 3 * time.Minute

// turn is one server's turn at one workload, in an empty directory of its own.
type turn struct {
	ctx    context.Context
	spec   serverSpec
	dir    string
	quick  bool
	server *process // the running one

	figures  []figure
	failures []failure
}

// figure is one measured value. Names that end in "/s" are better when higher, all
// others when lower.
type figure struct {
	Case  string  `json:"case"`
	Name  string  `json:"figure"`
	Value float64 `json:"value"`
}

// failure is why a case, or with an empty name the whole turn, has no figures.
type failure struct {
	Case       string `json:"case"`
	Reason     string `json:"reason"`
	NotOffered bool   `json:"not_offered"`
}

// setter records a figure of a case.
type setter func(name string, value float64)

// take has a server do a workload.
func take(ctx context.Context, w workload, spec serverSpec, dir string, quick bool) *turn {
	limit := w.limit
	if limit == 0 {
		limit = turnTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the turn took longer than %v", limit))
	defer cancel()
	t := &turn{ctx: ctx, spec: spec, dir: dir, quick: quick}
	defer t.stop()
	if err := w.run(t); err != nil {
		t.fail("", err)
	}
	return t
}

// measure runs a case. Its figures count only if it returns no error, so that what is
// wrong is never fast.
func (t *turn) measure(name string, run func(set setter) error) {
	var figures []figure
	err := run(func(figureName string, value float64) {
		figures = append(figures, figure{name, figureName, value})
	})
	for _, f := range figures {
		if err == nil && math.IsNaN(f.Value) {
			err = fmt.Errorf("nothing happened that could tell %s", f.Name)
		}
	}
	if err != nil {
		t.fail(name, err)
		return
	}
	t.figures = append(t.figures, figures...)
}

func (t *turn) fail(name string, err error) {
	missing := status.Code(err) == codes.Unimplemented
	t.failures = append(t.failures, failure{name, err.Error(), missing})
}

// start starts the server on the turn's directory. There is one at a time.
func (t *turn) start() (err error) {
	t.server, err = startProcess(t.ctx, t.spec, t.dir)
	return err
}

// stop ends the server, if it runs.
func (t *turn) stop() {
	if t.server != nil {
		t.server.stop()
		t.server = nil
	}
}

// restart stops the server and starts it again, so that a case begins with a small process.
func (t *turn) restart() error {
	t.stop()
	return t.start()
}

// crash ends the server as kill -9 does and starts it again.
func (t *turn) crash() error {
	t.server.kill()
	t.server = nil
	return t.start()
}

// kv returns n clients of connections of their own.
func (t *turn) kv(n int) []pb.KVClient {
	out := make([]pb.KVClient, n)
	for i := range out {
		out[i] = pb.NewKVClient(t.server.conn(i))
	}
	return out
}

// using measures the server while do runs.
func (t *turn) using(do func() error) (usage, error) {
	m, err := newMeter(t.server.pid)
	if err != nil {
		return usage{}, err
	}
	err = do()
	u, err2 := m.stop()
	return u, errors.Join(err, err2)
}

// pick returns full, or with -quick the smaller quick.
func pick[T any](t *turn, full, quick T) T {
	if t.quick {
		return quick
	}
	return full
}

// diskUse returns how much of the disk the turn's directory takes.
func (t *turn) diskUse() (int64, error) {
	var sum int64
	err := filepath.WalkDir(t.dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		blocks, err := allocated(name)
		sum += blocks
		return err
	})
	return sum, err
}
