package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarn-kv/tarn/store"
)

// fakeStore writes one revision a minute, and notes compactions.
type fakeStore struct {
	start time.Time
	fail  error
	calls []compaction
}

type compaction struct {
	after time.Duration
	rev   int64
}

func (f *fakeStore) Revision() int64 { return 1 + int64(time.Since(f.start)/time.Minute) }

func (f *fakeStore) Compact(_ context.Context, rev int64, _ bool) (int64, error) {
	f.calls = append(f.calls, compaction{time.Since(f.start), rev})
	return f.Revision(), f.fail
}

// compactFor runs automatic compaction for some time and returns what it did.
func compactFor(t *testing.T, keep retention, d time.Duration, fail error) (calls []compaction) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{start: time.Now(), fail: fail}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			(&autoCompactor{store: f, keep: keep, log: slog.New(slog.DiscardHandler)}).run(ctx)
			close(done)
		}()
		time.Sleep(d)
		synctest.Wait()
		cancel()
		<-done
		calls = f.calls
	})
	return calls
}

func TestAutoCompaction(t *testing.T) {
	const h, m = time.Hour, time.Minute
	tests := []struct {
		name string
		keep retention
		run  time.Duration
		fail error
		want []compaction
	}{
		{"CMP-9 off", retention{}, 100 * h, nil, nil},
		{"CMP-9 periodic, short", retention{period: 10 * m}, 31 * m, nil,
			[]compaction{{10 * m, 1}, {20 * m, 11}, {30 * m, 21}}},
		{"CMP-9 periodic, long: hourly after the first", retention{period: 3 * h}, 5*h + m, nil,
			[]compaction{{3 * h, 1}, {4 * h, 61}, {5 * h, 121}}},
		{"CMP-9 revision", retention{revisions: 7}, 16 * m, nil,
			[]compaction{{10 * m, 4}, {15 * m, 9}}},
		{"CMP-9 somebody else compacted", retention{period: 10 * m}, 21 * m, store.ErrCompacted,
			[]compaction{{10 * m, 1}, {20 * m, 11}}},
		{"CMP-9 a failure is tried again at the next sample", retention{period: 10 * m}, 12*m + time.Second, errors.New("disk"),
			[]compaction{{10 * m, 1}, {11 * m, 2}, {12 * m, 3}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := compactFor(t, tt.keep, tt.run, tt.fail); !slices.Equal(got, tt.want) {
				t.Errorf("compactions %v, want %v", got, tt.want)
			}
		})
	}
}

func TestParseRetention(t *testing.T) {
	tests := []struct {
		mode compactMode
		text string
		want retention
		ok   bool
	}{
		{compactPeriodic, "0", retention{}, true},
		{compactPeriodic, "0s", retention{}, true},
		{compactPeriodic, "8", retention{period: 8 * time.Hour}, true},
		{compactPeriodic, "5m", retention{period: 5 * time.Minute}, true},
		{compactPeriodic, "1ms", retention{}, false},
		{compactPeriodic, "-1h", retention{}, false},
		{compactPeriodic, "-1", retention{}, false},
		{compactPeriodic, "9999999999", retention{}, false},
		{compactPeriodic, "", retention{}, false},
		{compactRevision, "0", retention{}, true},
		{compactRevision, "1000", retention{revisions: 1000}, true},
		{compactRevision, "-1", retention{}, false},
		{compactRevision, "5m", retention{}, false},
	}
	for _, tt := range tests {
		got, err := parseRetention(tt.mode, tt.text)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s %q: %+v, %v", tt.mode, tt.text, got, err)
		}
	}
}
