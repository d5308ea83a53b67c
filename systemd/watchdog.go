package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Watched is what a Watchdog looks at.
type Watched interface {
	// Hanging tells what has been waited for longest and for how long; "" and 0 if nothing is. It does
	// not wait.
	Hanging() (what string, age time.Duration)
	// Progress is a number that changes when something has come to its end. It does not wait.
	Progress() uint64
	// Check returns once all that is watched has answered. It may wait for ever; there is one call
	// at a time.
	Check()
}

// Watchdog feeds systemd's watchdog as long as what it watches goes on.
type Watchdog struct {
	notifier *Notifier
	log      *slog.Logger
	watched  Watched
	// interval is the time without being fed after which systemd kills. What does not come to
	// its end within limit is not fed for.
	interval, limit time.Duration

	checked  chan struct{} // gets a value when a check has ended
	checking bool
	begun    time.Time // when the check under way has begun
	progress uint64
	moved    time.Time // when progress has changed last
	held     time.Time // since when it does not feed; zero: it feeds
	told     bool      // the log says that it does not feed
	toldLast time.Time // when the log said so last
}

// leastInterval is the shortest WatchdogSec=: within less a healthy disk and a busy machine can not answer.
const leastInterval = time.Second

// tellEvery is the shortest time between two lines of the log for what comes and goes.
const tellEvery = time.Minute

// WatchdogInterval is WatchdogSec= of the unit, or 0 if it has none for this process. An error is returned
// for what is no time, and for one below a second if there is somebody to feed it to.
func WatchdogInterval() (time.Duration, error) {
	d, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		return 0, fmt.Errorf("watchdog of systemd: %w; do not set WATCHDOG_USEC by hand", err)
	}
	if d > 0 && d < leastInterval && os.Getenv("NOTIFY_SOCKET") != "" {
		return 0, fmt.Errorf("watchdog of systemd: %v (WATCHDOG_USEC) is too short for any disk to answer; set WatchdogSec= in the unit to %v or more, 2min is usual, or leave it out", d, leastInterval)
	}
	return d, nil
}

// NewWatchdog returns a watchdog, or nil if systemd wants none: the interval is 0, or the Notifier
// nil. A nil Watchdog does nothing.
func NewWatchdog(n *Notifier, log *slog.Logger, interval time.Duration, watched Watched) *Watchdog {
	if n == nil || interval <= 0 {
		return nil
	}
	return &Watchdog{
		notifier: n, log: log, watched: watched, interval: interval, limit: interval / 2,
		checked: make(chan struct{}, 1),
	}
}

// Run feeds until ctx ends. It does not wait for the check under way: a disk that hangs must not
// keep the process from ending.
//
// Its timer is the only one of an idle service: systemd asks for it.
func (w *Watchdog) Run(ctx context.Context) {
	if w == nil {
		return
	}
	timer := time.NewTimer(w.look())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(w.look())
		}
	}
}

// look feeds or does not, and returns when to look again.
func (w *Watchdog) look() time.Duration {
	what, age := w.waiting()
	if age >= w.limit {
		w.hold(what)
		return min(w.interval/8, 5*time.Second)
	}
	w.notifier.feed()
	switch {
	case !w.held.IsZero():
		w.held = time.Time{}
		if w.told {
			w.log.Warn("what the watchdog waited for has answered: it is fed again")
		}
	case age >= w.interval/8:
		w.notifier.Status("waiting: " + what)
	}
	if !w.checking {
		w.checking, w.begun = true, time.Now()
		go func() {
			w.watched.Check()
			w.checked <- struct{}{}
		}()
	}
	// Not later than that what is waited for now can have reached the limit.
	return max(w.limit-age, w.interval/16)
}

// waiting tells what is waited for, and for how long.
func (w *Watchdog) waiting() (what string, age time.Duration) {
	if w.checking {
		select {
		case <-w.checked:
			w.checking = false
		default:
		}
	}
	now := time.Now()
	if p := w.watched.Progress(); p != w.progress || w.moved.IsZero() {
		w.progress, w.moved = p, now
	}
	what, age = w.watched.Hanging()
	if !w.checking {
		return what, age
	}
	// A slow disk ends something now and then, so a check that waits its turn is no sign.
	since := w.begun
	if w.moved.After(since) {
		since = w.moved
	}
	if quiet := now.Sub(since); quiet > age {
		text := fmt.Sprintf("no answer for %v", quiet.Round(time.Second))
		if what != "" {
			text += "; " + what
		} else {
			text += ", and no file operation is under way"
		}
		return text, quiet
	}
	return what, age
}

// hold tells why systemd is about to kill, while it can still be told. The log comes last: whoever
// reads it may wait for the same disk.
func (w *Watchdog) hold(what string) {
	w.notifier.Status("hanging, and not feeding the watchdog: " + what)
	now := time.Now()
	if w.held.IsZero() {
		w.held, w.told = now, false
	}
	// What comes and goes is told now and then. What stays is told while systemd still waits: it kills
	// half an interval after the begin at the earliest.
	if w.told || !w.toldLast.IsZero() && now.Sub(w.toldLast) < tellEvery && now.Sub(w.held) < w.interval/4 {
		return
	}
	w.told, w.toldLast = true, now
	w.log.Error("the watchdog is not fed any more: systemd will restart the service unless it goes on in time", "waiting", what, "WatchdogSec", w.interval)
}
