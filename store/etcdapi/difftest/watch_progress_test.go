package difftest

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func notify(key string, start int64) *pb.WatchRequest {
	return Create(&pb.WatchCreateRequest{Key: []byte(key), StartRevision: start, ProgressNotify: true})
}

func TestWatchProgress(t *testing.T) {
	everySecond := []string{"--watch-progress-notify-interval=1s"}
	suite.Run(t, []Case{
		{Name: "requested", Steps: []Step{
			call("a", Put("a", "1")),
			{"open", Open("w")},
			{"WCH-42 no watcher", Quiet("w", Progress())},
			{"WCH-1 create", Ask("w", 1, from("a", 0))},
			{"WCH-41 TOP-2 answered", Ask("w", 1, Progress())},
			{"WCH-41 once per request", Ask("w", 2, Progress(), Progress())},
			call("put elsewhere", Put("b", "1")),
			{"WCH-41 moves on", Ask("w", 1, Progress())},
			call("put a", Put("a", "2")),
			{"TOP-3 event before progress", Ask("w", 2, Progress())},
			{"WCH-43 catching up", Ask("w", 2, from("a", 2))},
			{"WCH-43 answered once synced", Synced("w")},
			{"WCH-44 start in the future", Ask("w", 1, from("a", 6))},
			{"WCH-44 blocks the stream", Quiet("w", Progress())},
			call("reach 5", Put("b", "2")),
			{"WCH-44 still blocks", Quiet("w", Progress())},
			call("reach 6", Put("b", "3")),
			{"WCH-44 reached", Ask("w", 1, Progress())},
			{"WCH-30 cancel all", Ask("w", 3, Cancel(0), Cancel(1), Cancel(2))},
			{"WCH-42 no watcher left", Quiet("w", Progress())},
			{"WCH-44 start at the next", Ask("w", 1, from("a", 7))},
			{"WCH-44 start at the next blocks", Quiet("w", Progress())},
		}},
		{Name: "requested with a watcher canceled by compaction", Steps: []Step{
			call("a=1", Put("a", "1")), call("a=2", Put("a", "2")), call("a=3", Put("a", "3")), call("compact 4", Compact(4)),
			{"open", Open("w")},
			{"create", Ask("w", 1, from("a", 0))},
			{"WCH-8 too old", Ask("w", 2, from("a", 2))},
			{"WCH-46 V-7 progress", Quiet("w", Progress())},
			{"WCH-32 cancel", Ask("w", 1, Cancel(1))},
			{"WCH-46 progress after the cancel", Ask("w", 1, Progress())},
		}},
		{Name: "periodic", Flags: everySecond, Steps: []Step{
			call("a", Put("a", "1")),
			{"open", Open("w")},
			{"WCH-40 create 0", Ask("w", 1, notify("a", 0))},
			{"WCH-40 create 1", Ask("w", 1, notify("b", 0))},
			{"WCH-40 create 2 without the flag", Ask("w", 1, from("c", 0))},
			{"WCH-40 idle ticks", ticks("w", 3500*time.Millisecond, "")},
			{"WCH-40 events suppress", ticks("w", 3500*time.Millisecond, "a")},
			{"cancel all", ticks("w", 0, "")},
		}},
		{Name: "periodic and the future", Flags: everySecond, Steps: []Step{
			call("a", Put("a", "1")),
			{"open", Open("w")},
			{"WCH-44 start at the next", Ask("w", 1, notify("b", 3))},
			{"WCH-44 nothing while it waits", ticks("w", 2500*time.Millisecond, "")},
			call("reach it", Put("a", "2")),
			{"WCH-44 then with that revision", ticks("w", 2500*time.Millisecond, "")},
			{"cancel all", ticks("w", 0, "")},
		}},
		{Name: "race", Steps: []Step{{"TOP-3 WCH-45 progress under load", progressRace(300)}}},
	})
}

// ticks watches a stream for a while, putting key busy (if named) each 200 ms,
// and compares which ids got progress, with which revision if nothing was
// written. With a time of 0 it cancels watches 0 to 2 and discards the answers,
// so that the end of the case is silent.
func ticks(w string, d time.Duration, busy string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		if d == 0 {
			f = s.send(w, []*pb.WatchRequest{Cancel(0), Cancel(1), Cancel(2)})
			for ok := true; ok; {
				_, ok = s.watches[w].next(2 * quietTime)
			}
			return f
		}
		seen := map[string]string{}
		puts := 0
		for end := time.Now().Add(d); time.Now().Before(end); {
			if busy != "" && puts < 15 {
				if _, err := s.kv().Put(ctx, Put(busy, "1")); err != nil {
					f.status(s, err)
				}
				puts++
			}
			for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
				if m, ok := s.watches[w].next(time.Until(until)); ok {
					noteTick(seen, m, busy == "")
				}
			}
		}
		for _, id := range sortedKeys(seen) {
			f.add(id, seen[id])
		}
		return f
	}
}

func noteTick(seen map[string]string, m *pb.WatchResponse, idle bool) {
	kind := "progress"
	if len(m.Events) > 0 {
		kind = "events"
	}
	detail := fmt.Sprintf("created=%v canceled=%v compact=%d", m.Created, m.Canceled, m.CompactRevision)
	if idle {
		detail += fmt.Sprintf(" revision=%d", m.Header.Revision)
	}
	seen[fmt.Sprintf("id %d %s", m.WatchId, kind)] = detail
}

// progressRace writes and asks for progress at once, n times each, and compares
// that no progress message overtakes an event.
func progressRace(n int) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		w, err := s.open(ctx)
		if err == nil {
			defer w.cancel()
			err = w.stream.Send(from("k", 0))
		}
		if err == nil {
			_, ok := w.next(recvTimeout)
			f.add("created", ok)
		}
		if err != nil {
			f.status(s, err)
			return f
		}
		asked := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < n && err == nil; i++ {
				err = w.stream.Send(Progress())
			}
			asked <- err
		}()
		for i := 0; i < n && err == nil; i++ {
			_, err = s.kv().Put(ctx, Put("k", fmt.Sprint(i)))
		}
		f.status(s, err)
		f.add("asked", <-asked)
		events, violations, promised := 0, 0, int64(0)
		for events < n {
			m, ok := w.next(recvTimeout)
			if !ok {
				f.add("!missing events", n-events)
				break
			}
			if len(m.Events) == 0 {
				promised = m.Header.Revision
			}
			for _, e := range m.Events {
				if e.Kv.ModRevision <= promised {
					violations++
				}
				events++
			}
		}
		f.add("events", events)
		f.add("violations", violations)
		return f
	}
}
