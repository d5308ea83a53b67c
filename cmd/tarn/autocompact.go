package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/tarn-kv/tarn/store"
)

// Automatic compaction, with etcd's rules (CMP-9). A cluster does not need it:
// kube-apiserver compacts by itself.

type compactMode string

const (
	compactPeriodic compactMode = "periodic"
	compactRevision compactMode = "revision"
)

const (
	// compactAtLeastEvery bounds the time between two compactions by time.
	compactAtLeastEvery = time.Hour
	// revisionCheckInterval is the time between two compactions by revisions.
	revisionCheckInterval = 5 * time.Minute
	// leastPeriod keeps the sampling, ten times a period, from being busy work.
	leastPeriod = time.Second

	validRetention = `"0" for off; hours such as 8 or a time of at least 1s such as 30m (periodic); a number of revisions such as 10000 (revision)`
)

// retention is how much history automatic compaction keeps; the zero value
// keeps all.
type retention struct {
	period    time.Duration // in mode periodic
	revisions int64         // in mode revision
}

// parseRetention reads --auto-compaction-retention in the light of the mode.
func parseRetention(mode compactMode, text string) (retention, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	isNumber := err == nil
	switch {
	case isNumber && n < 0:
		return retention{}, errNotValid
	case isNumber && mode == compactRevision:
		return retention{revisions: n}, nil
	case isNumber && n > int64(1<<63-1)/int64(time.Hour):
		return retention{}, errNotValid
	case isNumber:
		return retention{period: time.Duration(n) * time.Hour}, nil
	case mode == compactRevision:
		return retention{}, errors.New("in mode revision it must be a whole number")
	}
	period, err := time.ParseDuration(text)
	if err != nil || period != 0 && period < leastPeriod {
		return retention{}, errNotValid
	}
	return retention{period: period}, nil
}

// compactable is what automatic compaction needs of a store.
type compactable interface {
	Revision() int64
	Compact(ctx context.Context, rev int64, physical bool) (current int64, err error)
}

// autoCompactor compacts a store from time to time.
type autoCompactor struct {
	store compactable
	keep  retention
	log   *slog.Logger
	last  int64 // the newest revision that was compacted to
}

// run compacts until ctx ends. It returns at once if nothing is to be compacted:
// an idle server has no ticker that does nothing.
func (c *autoCompactor) run(ctx context.Context) {
	switch {
	case c.keep.period > 0:
		c.runPeriodic(ctx)
	case c.keep.revisions > 0:
		c.runRevision(ctx)
	}
}

// sample is a revision and when it was the current one.
type sample struct {
	at  time.Time
	rev int64
}

// runPeriodic compacts to the revision of one period ago: first after one
// period, then every period or hour, whichever is shorter. It retries a
// compaction that failed at the next sample.
func (c *autoCompactor) runPeriodic(ctx context.Context) {
	interval := min(c.keep.period, compactAtLeastEvery)
	step := interval / 10
	slack := step / 2 // a tick a little before its time counts as on time
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	now := time.Now()
	samples := []sample{{now, c.store.Revision()}}
	due := now.Add(c.keep.period)
	for {
		select {
		case <-ctx.Done():
			return
		case now = <-ticker.C:
		}
		samples = append(samples, sample{now, c.store.Revision()})
		for len(samples) > 1 && now.Sub(samples[1].at) >= c.keep.period-slack {
			samples = samples[1:]
		}
		if now.After(due.Add(-slack)) && c.compact(ctx, samples[0].rev) {
			due = now.Add(interval)
		}
	}
}

// runRevision keeps a number of revisions, looking every five minutes.
func (c *autoCompactor) runRevision(ctx context.Context) {
	ticker := time.NewTicker(revisionCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.compact(ctx, c.store.Revision()-c.keep.revisions)
		}
	}
}

// compact reports whether everything up to rev is compacted, by whomever.
func (c *autoCompactor) compact(ctx context.Context, rev int64) bool {
	if rev <= c.last || rev <= 0 {
		return true
	}
	_, err := c.store.Compact(ctx, rev, false)
	switch {
	case err == nil:
		c.log.Info("compacted automatically", "revision", rev)
	case errors.Is(err, store.ErrCompacted):
		c.log.Debug("automatic compaction found it compacted already", "revision", rev)
	case ctx.Err() != nil:
		return false
	default:
		c.log.Warn("automatic compaction failed; it is tried again", "error", fmt.Errorf("compact to revision %d: %w", rev, err))
		return false
	}
	c.last = rev
	return true
}
