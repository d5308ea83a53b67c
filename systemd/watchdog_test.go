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

// fakeWatched is something that can hang, in a time that the test moves.
type fakeWatched struct {
	mu       sync.Mutex
	since    time.Time // of the operation under way; zero: none is
	done     uint64
	checks   int
	unlocked chan struct{} // a check waits for it; nil: it returns at once
}

func (f *fakeWatched) Hanging() (string, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		return "", 0
	}
	return "fdatasync of a file", time.Since(f.since)
}

func (f *fakeWatched) Progress() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

func (f *fakeWatched) Check() {
	f.mu.Lock()
	f.checks++
	wait := f.unlocked
	f.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

func (f *fakeWatched) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// dogTest is a watchdog with an interval of a minute in simulated time.
type dogTest struct {
	*fakeWatched
	*told
	log *logText
}

const testInterval = time.Minute

func runDog(t *testing.T, test func(t *testing.T, d *dogTest)) {
	synctest.Test(t, func(t *testing.T) {
		n, r := newTold()
		d := &dogTest{new(fakeWatched), r, new(logText)}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { NewWatchdog(n, slog.New(slog.NewTextHandler(d.log, nil)), testInterval, d).Run(ctx) })
		test(t, d)
		cancel()
		wg.Wait()
	})
}

// alive lets time pass and tells whether systemd would have killed meanwhile, if it was
// fed just before.
func (d *dogTest) alive(total time.Duration) bool {
	const step = time.Second
	hungry := time.Duration(0)
	d.take()
	for range total / step {
		time.Sleep(step)
		synctest.Wait()
		if count(d.take(), "WATCHDOG=1") > 0 {
			hungry = 0
		} else if hungry += step; hungry >= testInterval {
			return false
		}
	}
	return true
}

func TestWatchdogIdle(t *testing.T) {
	runDog(t, func(t *testing.T, d *dogTest) {
		if !d.alive(time.Hour) {
			t.Error("an idle service is not fed")
		}
		if d.checks > 2*60+2 {
			t.Errorf("%d checks in an hour", d.checks)
		}
		if d.log.String() != "" {
			t.Errorf("the log is not empty: %s", d.log)
		}
	})
}

// An operation that does not return.
func TestWatchdogHanging(t *testing.T) {
	for _, offset := range []time.Duration{0, 10 * time.Second, 29 * time.Second} {
		runDog(t, func(t *testing.T, d *dogTest) {
			time.Sleep(10*time.Minute + offset)
			d.set(func() { d.since = time.Now() })
			hung := time.Now()
			var killed, lastFed time.Time
			reason := time.Time{}
			for lastFed = hung; killed.IsZero() && time.Since(hung) < time.Hour; {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				now, list := time.Now(), d.take()
				if count(list, "WATCHDOG=1") > 0 {
					lastFed = now
				}
				if count(list, "STATUS=hanging") > 0 && reason.IsZero() {
					reason = now
				}
				if now.Sub(lastFed) >= testInterval {
					killed = now
				}
			}
			if killed.IsZero() {
				t.Fatalf("offset %v: it is fed for an hour", offset)
			}
			if took := killed.Sub(hung); took > testInterval*3/2+time.Second {
				t.Errorf("offset %v: killed after %v, at most one and a half WatchdogSec are promised", offset, took)
			}
			if reason.IsZero() || killed.Sub(reason) < testInterval/4 {
				t.Errorf("offset %v: the reason is told %v before the kill", offset, killed.Sub(reason))
			}
			if log := d.log.String(); strings.Count(log, "not fed any more") != 1 || !strings.Contains(log, "fdatasync of a file") {
				t.Errorf("offset %v: log:\n%s", offset, log)
			}
			d.set(func() { d.since = time.Time{} })
			if !d.alive(time.Hour) || !strings.Contains(d.log.String(), "fed again") {
				t.Errorf("offset %v: it is not fed after the operation has returned; log:\n%s", offset, d.log)
			}
		})
	}
}

// A disk that takes seconds for everything, with one operation after the other and checks
// that wait their turn for longer than the limit.
func TestWatchdogSlowDisk(t *testing.T) {
	runDog(t, func(t *testing.T, d *dogTest) {
		ctx, cancel := context.WithCancel(t.Context())
		var disk sync.WaitGroup
		defer disk.Wait()
		defer cancel()
		disk.Go(func() {
			for ctx.Err() == nil {
				d.set(func() { d.since = time.Now(); d.unlocked = make(chan struct{}) })
				for range 4 {
					time.Sleep(20 * time.Second)
					d.set(func() { d.since = time.Now(); d.done++ })
				}
				d.set(func() { close(d.unlocked); d.since = time.Time{} })
			}
		})
		if !d.alive(time.Hour) {
			t.Errorf("a slow disk is not fed for; log:\n%s", d.log)
		}
		if strings.Contains(d.log.String(), "not fed") {
			t.Errorf("log:\n%s", d.log)
		}
	})
}

// What hangs again and again is told now and then, and what hangs for good before the kill.
func TestWatchdogComesAndGoes(t *testing.T) {
	runDog(t, func(t *testing.T, d *dogTest) {
		for range 30 {
			d.set(func() { d.since = time.Now() })
			for range 32 {
				time.Sleep(time.Second)
			}
			d.set(func() { d.since = time.Time{} })
			time.Sleep(8 * time.Second)
		}
		if log := d.log.String(); strings.Count(log, "not fed any more") != strings.Count(log, "fed again") || strings.Count(log, "fed again") > 20 {
			t.Errorf("in 20 minutes:\n%s", log)
		}
		before := strings.Count(d.log.String(), "not fed any more")
		d.set(func() { d.since = time.Now() })
		if d.alive(2 * testInterval) {
			t.Error("it is fed")
		}
		if log := d.log.String(); strings.Count(log, "not fed any more") != before+1 {
			t.Errorf("the last reason is missing:\n%s", log)
		}
		d.set(func() { d.since = time.Time{} })
	})
}

// A check that does not end though no operation is under way: the fault is in the service.
func TestWatchdogStuck(t *testing.T) {
	runDog(t, func(t *testing.T, d *dogTest) {
		time.Sleep(10 * time.Minute)
		d.set(func() { d.unlocked = make(chan struct{}) })
		if d.alive(3 * testInterval) {
			t.Error("a service that does not answer is fed")
		}
		if log := d.log.String(); !strings.Contains(log, "no answer for") || !strings.Contains(log, "no file operation is under way") {
			t.Errorf("log:\n%s", log)
		}
		d.set(func() { close(d.unlocked) })
	})
}
