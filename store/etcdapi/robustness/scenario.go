package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.uber.org/zap"
)

// history is what a scenario has left behind.
type history struct {
	Plan     plan
	Problems []string // what was wrong besides the clients' view

	clients []report.ClientReport
}

const (
	// lastWriteLimit is how long the server may take to accept writes after the
	// last failpoint. It refuses them until it has noticed that the disk has room.
	lastWriteLimit = 60 * time.Second
	// observerLimit is how long a watch may take to deliver the last event.
	observerLimit = 60 * time.Second
	// brokenObserverLimit is observerLimit for a broken server, which may never do so.
	brokenObserverLimit = 5 * time.Second
)

// scenario is one run of a plan.
type scenario struct {
	plan     plan
	broken   broken
	server   *server
	endpoint string // of the server, or of a proxy before it
	clients  *client.ClientSet
	watches  *client.ClientSet
}

// Names in the directory of a scenario.
const (
	dataName     = "data" // the server's data directory
	segmentsName = "log"  // all segments of its log
)

// runScenario runs the plan in dir, which must exist. The error is about the run
// itself; what the server did wrong is in the history.
func runScenario(ctx context.Context, p plan, bins binaries, dir string) (*history, error) {
	s := &scenario{plan: p}
	var err error
	if s.broken, err = brokenNamed(p.Broken); err != nil {
		return nil, err
	}
	if s.server, err = newServer(p, bins, dir); err != nil {
		return nil, err
	}
	log := filepath.Join(s.server.data, "wal")
	keeper, err := keepSegments(log, filepath.Join(dir, segmentsName))
	if err != nil {
		return nil, err
	}
	h := &history{Plan: p}
	base, ids := time.Now(), identity.NewIDProvider()
	s.clients, s.watches = client.NewSet(ids, base), client.NewSet(ids, base)
	runErr := s.run(ctx, log, h)
	if err := s.server.ended(); err != nil {
		h.problem(err)
	} else if runErr != nil && ctx.Err() == nil {
		h.problem(runErr)
	}
	stopErr := s.server.kill()
	h.clients = slices.Concat(s.clients.Reports(), s.watches.Reports())
	return h, errors.Join(ctx.Err(), stopErr, keeper.finish())
}

func (h *history) problem(err error) { h.Problems = append(h.Problems, err.Error()) }

// run starts the server, does what is planned, and returns when all watches
// have their last event.
func (s *scenario) run(ctx context.Context, log string, h *history) error {
	if err := s.server.start(ctx); err != nil {
		return err
	}
	s.endpoint = s.server.address
	if s.broken.tamper != nil {
		proxy, err := startProxy(s.server.address, s.broken.tamper())
		if err != nil {
			return err
		}
		defer proxy.stop()
		s.endpoint = proxy.address
	}
	if err := traffic.CheckEmptyDatabaseAtStart(ctx, zap.NewNop(), []string{s.endpoint}, s.clients); err != nil {
		return fmt.Errorf("look at the empty store: %w", err)
	}
	load, err := startTraffic(ctx, s.plan, s.endpoint, s.clients)
	if err != nil {
		return err
	}
	watching, err := startObservers(ctx, s.plan, s.endpoint, s.watches)
	if err != nil {
		load.stop()
		return err
	}
	defer watching.stop()
	err = s.inject(ctx, log)
	load.stop()
	if err != nil {
		return err
	}
	return s.close(ctx, watching, h)
}

// inject goes through the failpoints while the traffic runs.
func (s *scenario) inject(ctx context.Context, log string) error {
	in := injection{server: s.server, rand: newRand(s.plan.Seed, 1), log: log}
	for _, step := range s.plan.Failpoints {
		f, err := failpointNamed(step.Name)
		if err != nil {
			return err
		}
		if err := sleep(ctx, step.Wait); err != nil {
			return err
		}
		if err := f.inject(ctx, in); err != nil {
			return fmt.Errorf("failpoint %s: %w", f.name, err)
		}
	}
	return sleep(ctx, s.plan.After)
}

// keysEnd is behind all keys that the traffic uses.
const keysEnd = "~"

// close makes the last write, which the validation needs, waits until all watches have
// its event, and restarts the server once more: all that was acknowledged must still be there.
func (s *scenario) close(ctx context.Context, watching *observers, h *history) error {
	c, err := s.clients.NewClient([]string{s.endpoint})
	if err != nil {
		return err
	}
	defer c.Close()
	last, err := lastWrite(ctx, c, s.clients.IdentityProvider())
	if err != nil {
		return err
	}
	limit := observerLimit
	if s.plan.Broken != "" {
		limit = brokenObserverLimit
	}
	for _, err := range watching.finish(last, limit) {
		h.problem(err)
	}
	before, err := s.server.hash(ctx, last)
	if err != nil {
		return err
	}
	if err := s.server.stop(pick(newRand(s.plan.Seed, 2), syscall.SIGKILL, syscall.SIGTERM)); err != nil {
		return err
	}
	if err := s.server.start(ctx); err != nil {
		return err
	}
	after, err := s.server.hash(ctx, last)
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("the hash of all keys at revision %d was %d before a restart and is %d after it", last, before, after)
	}
	return readAll(ctx, c)
}

// retryPause is the time between tries of the last requests.
const retryPause = 100 * time.Millisecond

// lastWrite writes until it succeeds.
func lastWrite(ctx context.Context, c *client.RecordingClient, ids identity.Provider) (revision int64, err error) {
	err = retry(ctx, "write after the last failpoint", func(ctx context.Context) error {
		r, err := c.Put(ctx, "tombstone", strconv.Itoa(ids.NewRequestID()))
		if err == nil {
			revision = r.Header.Revision
		}
		return err
	})
	return revision, err
}

// readAll reads all keys, for the check to compare them.
func readAll(ctx context.Context, c *client.RecordingClient) error {
	return retry(ctx, "read after the last restart", func(ctx context.Context) error {
		_, err := c.Range(ctx, "!", keysEnd, 0, 0, false)
		return err
	})
}

func retry(ctx context.Context, what string, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lastWriteLimit)
	defer cancel()
	for {
		once, cancelOnce := context.WithTimeout(ctx, 10*requestTimeout)
		err := request(once)
		cancelOnce()
		if err == nil {
			return nil
		}
		if sleep(ctx, retryPause) != nil {
			return fmt.Errorf("%s: not possible for %v: %w", what, lastWriteLimit, err)
		}
	}
}
