package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/systemd"
)

// commitPatience is how many times as long as a single write or sync a commit of the tree can
// take: it writes tens of megabytes, and syncs twice.
const commitPatience = 4

// serviceManager is what systemd wants to be told, and by what it is told. Without systemd all of it
// is nil, and does nothing.
type serviceManager struct {
	notify   *systemd.Notifier
	reporter *systemd.Reporter
	recovery *systemd.Recovery
	watchdog time.Duration // WatchdogSec, or 0
}

// joinSystemd takes what systemd has for this process: sockets, and the addresses of whom to tell.
func (s *serving) joinSystemd() error {
	sockets, err := systemd.Sockets(s.log, passedClient, passedMetrics)
	if err != nil {
		return err
	}
	s.usePassed(sockets)
	s.manager.notify = systemd.NewNotifier(s.log)
	s.manager.watchdog, err = systemd.WatchdogInterval()
	return err
}

// beginRecovery tells systemd that the start has begun, and asks for the time that it needs, until end is called.
// It begins before the first look at the data directory, which can hang as well.
func (s *serving) beginRecovery() (end func()) {
	m := &s.manager
	m.reporter = systemd.NewReporter(m.notify, s.statusLine)
	m.recovery = systemd.NewRecovery(m.notify, s.log, s.hanging)
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { m.recovery.Run(ctx) })
	return func() {
		cancel()
		background.Wait()
	}
}

// tellReady tells systemd that all is recovered and served, or that a reload has ended.
func (s *serving) tellReady() {
	if s.manager.notify != nil {
		s.manager.notify.Ready(s.statusLine())
	}
}

// watch looks after the open store until unwatch is called.
func (s *serving) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { s.manager.reporter.Run(ctx) })
	dog := systemd.NewWatchdog(s.manager.notify, s.log, s.manager.watchdog, &watchedStore{s: s})
	background.Go(func() { dog.Run(ctx) })
	s.unwatch = func() {
		cancel()
		background.Wait()
	}
}

// statusLine is how the server is, for systemctl status.
func (s *serving) statusLine() string {
	st := s.store.Status()
	return fmt.Sprintf("revision %d, %s in use, %d watchers", st.Revision, roughBytes(st.InUse), st.Watchers)
}

// hanging tells which file operation has been under way for longest. It does not wait.
func (s *serving) hanging() (what string, age time.Duration) {
	for _, w := range s.disk.Waits() {
		counts := w.For
		if w.Op == vfs.OpCommit {
			counts /= commitPatience
		}
		if counts >= age {
			age = counts
			what = fmt.Sprintf("%s of %s has not returned for %v; does the disk answer, is the pool suspended (zpool status -x)?",
				w.Op, w.Name, w.For.Round(time.Second))
		}
	}
	return what, age
}

// longestWait is how long the oldest file operation has been under way; 0 if none is.
func (s *serving) longestWait() (longest time.Duration) {
	for _, w := range s.disk.Waits() {
		longest = max(longest, w.For)
	}
	return longest
}

// watchedStore is the store as the watchdog sees it.
type watchedStore struct {
	s      *serving
	synced uint64 // at the last check
	sick   string // what the last check complained about
}

func (w *watchedStore) Hanging() (string, time.Duration) { return w.s.hanging() }

func (w *watchedStore) Progress() uint64 { return w.s.disk.Synced() }

// Check waits for the writer, and asks the disk if nobody else has since the last check. An error is
// an answer: what it means is decided where something is written.
func (w *watchedStore) Check() {
	if w.s.store.AwaitWriter() != nil {
		return // closed, or stopped for a reason that is told already
	}
	if synced := w.s.disk.Synced(); synced == w.synced {
		sick := ""
		if err := w.s.store.AskDisk(); err != nil {
			sick = err.Error()
		}
		if sick != "" && sick != w.sick {
			w.s.log.Warn("the disk answers with an error; the next write will show whether it is lost", "error", strings.TrimSpace(sick))
		}
		w.sick = sick
	}
	w.synced = w.s.disk.Synced()
	w.s.manager.reporter.Now()
}
