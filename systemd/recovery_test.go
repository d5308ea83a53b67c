package systemd

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// runRecovery runs a recovery in simulated time with a start that systemd gives 90 s.
func runRecovery(t *testing.T, hanging string, test func(t *testing.T, r *Recovery, told *told, log *logText)) {
	synctest.Test(t, func(t *testing.T) {
		n, told := newTold()
		log := new(logText)
		r := NewRecovery(n, slog.New(slog.NewTextHandler(log, nil)), func() (string, time.Duration) { return hanging, 0 })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		test(t, r, told, log)
		cancel()
		wg.Wait()
	})
}

// A recovery of ten minutes that goes on has the time it needs at each moment.
func TestRecoveryLong(t *testing.T) {
	runRecovery(t, "", func(t *testing.T, r *Recovery, told *told, log *logText) {
		asked := time.Now()
		for records := 1000; records <= 600_000; records += 1000 {
			time.Sleep(time.Second)
			r.Advance(records)
			if list := told.take(); count(list, "EXTEND_TIMEOUT_USEC=60000000") > 0 {
				asked = time.Now()
			} else if wait := time.Since(asked); wait > 2*extendEvery {
				t.Fatalf("no request for time for %v", wait)
			}
		}
		if log.String() != "" {
			t.Errorf("log:\n%s", log)
		}
	})
}

// One that hangs gets no more time, and tells what it waits for before its time is over.
func TestRecoveryHangs(t *testing.T) {
	runRecovery(t, "read of the log has not returned", func(t *testing.T, r *Recovery, told *told, log *logText) {
		time.Sleep(20 * time.Second)
		r.Advance(1000)
		told.take()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		list := told.take()
		if count(list, "EXTEND_TIMEOUT_USEC") > 0 {
			t.Errorf("a recovery that hangs asked for time: %q", list)
		}
		if last := list[len(list)-1]; !strings.Contains(last, "1000 records read, and no progress for") || !strings.Contains(last, "read of the log") {
			t.Errorf("the last status is %q", last)
		}
		if n := strings.Count(log.String(), "does not go on"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, log)
		}
	})
}
