package difftest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

func TestWatchEvents(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "kinds", Steps: []Step{
			call("grant", Grant(3, 1000)),
			{"open", Open("w")},
			{"watch with prev", Ask("w", 1, over("a", "z", 0))},
			{"open plain", Open("plain")},
			{"watch without prev", Ask("plain", 1, Create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("z")}))},
			call("create", PutLease("a", "1", 3)), {"WCH-21 create", Recv("w", 1)},
			call("update", Put("a", "2")), {"WCH-21 WCH-25 TOP-4 update", Recv("w", 1)},
			call("same value", Put("a", "2")), {"REV-3 same value", Recv("w", 1)},
			call("empty value", Put("a", "")), {"WCH-21 empty value", Recv("w", 1)},
			call("delete", Delete("a")), {"WCH-22 TOP-4 delete", Recv("w", 1)},
			call("create again", Put("a", "3")), {"WCH-25 create again has no prev", Recv("w", 1)},
			call("data", Do(Ops(Put("d", "1"), Put("c", "1"), Put("b", "1"))...)), {"WCH-23 put order", Recv("w", 1)},
			call("delete range", DeleteAll("b", "e")), {"WCH-23 key order in a delete", Recv("w", 1)},
			call("mixed", Do(Ops(Put("z0", "out"), Put("e", "1"), Delete("a"), Put("b", "2"))...)), {"WCH-23 TXN-14 only in range", Recv("w", 1)},
			call("leased", PutLease("l2", "1", 3)), call("leased too", PutLease("l1", "1", 3)), {"leased events", Recv("w", 2)},
			call("revoke", &pb.LeaseRevokeRequest{ID: 3}), {"LSE-4 REV-5 revoke", Recv("w", 1)},
			call("delete nothing", Delete("nope")),
			{"REV-4 no event", Quiet("w")},
			{"WCH-22 all without prev", Recv("plain", 12)},
			{"open catch-up", Open("old")},
			{"WCH-26 TOP-5 catch-up with prev", Ask("old", 2, over("a", "z", 2))},
			{"open catch-up without prev", Open("old2")},
			{"WCH-26 catch-up without prev", Ask("old2", 2, Create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("z"), StartRevision: 2}))},
		}},
		{Name: "prev_kv and compaction", Steps: []Step{
			call("a=1", Put("a", "1")), call("b=1", Put("b", "1")), call("a=2", Put("a", "2")), call("a=3", Put("a", "3")), call("delete a", Delete("a")),
			call("compact 4", Compact(4)),
			{"open", Open("w")},
			{"WCH-25 from the compact revision on", Ask("w", 2, over("a", "z", 4))},
			call("compact 5", Compact(5)),
			{"WCH-25 from the next on", Ask("w", 2, over("a", "z", 5))},
			{"CMP-8 synced watchers go on", Ask("w", 1, from("a", 0))},
			call("compact current", Compact(6)),
			call("a=4", Put("a", "4")),
			{"CMP-8 all see it", RecvByID("w", 3)},
		}},
		{Name: "many streams on one connection", Steps: []Step{{"GRPC-5 2000 streams", manyStreams(2000)}}},
		{Name: "many watches on one stream", Steps: manyWatches(60)},
		{Name: "large messages", Steps: []Step{
			{"data", Quietly(14, func(i int) proto.Message { return Put(fmt.Sprintf("big%02d", i), strings.Repeat("x", 300_000)) })},
			{"open", Open("w")},
			{"watch", Ask("w", 1, over("big", "bih", 2))},
			{"WCH-26 TOP-5 catch-up", Events("w", 14)},
			call("delete all", DeleteAll("big", "bih")),
			{"WCH-27 one revision of 4 MB in one message", Recv("w", 1)},
			{"WCH-27 fragments", fragments(&pb.WatchCreateRequest{Key: []byte("big"), RangeEnd: []byte("bih"), StartRevision: 16, Fragment: true, PrevKv: true}, 14)},
		}},
		{Name: "slow reader", Steps: []Step{{"WCH-29 nothing lost", slowReader(false)}}},
		{Name: "slow reader and compaction", Steps: []Step{{"WCH-33 canceled", slowReader(true)}}},
	})
}

// manyStreams opens n watch streams and compares that each gets its events.
func manyStreams(n int) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		var streams []*watch
		for range n {
			w, err := s.open(ctx)
			if err != nil {
				f.status(s, err)
				return f
			}
			defer w.cancel()
			streams = append(streams, w)
		}
		created, events := 0, 0
		for _, w := range streams {
			if err := w.stream.Send(from("k", 0)); err != nil {
				f.status(s, err)
			}
			if m, ok := w.next(recvTimeout); ok && m.Created {
				created++
			}
		}
		_, err := s.kv().Put(ctx, Put("k", "1"))
		f.status(s, err)
		for _, w := range streams {
			if m, ok := w.next(recvTimeout); ok && len(m.Events) == 1 {
				events++
			}
		}
		f.add("created", created)
		f.add("got the event", events)
		return f
	}
}

func manyWatches(n int) []Step {
	steps := []Step{{"open", Open("w")}}
	for i := range n {
		steps = append(steps, Step{fmt.Sprintf("WCH-20 create %d", i), Ask("w", 1, over(fmt.Sprintf("k%02d", i%7), "l", 0))})
	}
	return append(steps, call("put", Put("k03", "1")),
		Step{"WCH-28 events", RecvByID("w", 36)},
		call("txn", Do(Ops(Put("k06", "1"), Put("k00", "1"))...)),
		Step{"WCH-23 WCH-28 two events for each but k01 to k06", RecvByID("w", n)})
}

// fragments reads a catch-up of n events in parts and compares the merged
// events and how the parts are marked; where they are cut is the server's choice.
func fragments(r *pb.WatchCreateRequest, n int) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		w, err := s.open(ctx)
		if err == nil {
			defer w.cancel()
			err = w.stream.Send(Create(r))
		}
		f.status(s, err)
		if err != nil {
			return f
		}
		whole := &pb.WatchResponse{}
		parts, tooBig := 0, false
		for len(whole.Events) < n {
			m, ok := w.next(recvTimeout)
			if !ok {
				f.add("!missing", n-len(whole.Events))
				break
			}
			if m.Created {
				continue
			}
			parts++
			tooBig = tooBig || proto.Size(m) > 2<<20+512<<10
			last := len(whole.Events)+len(m.Events) == n
			f.add(fmt.Sprintf("mark of the last=%v part", last), m.Fragment)
			whole.Header, whole.WatchId = m.Header, m.WatchId
			whole.Events = append(whole.Events, m.Events...)
		}
		f.add("several parts", parts > 1)
		f.add("a part over 2.5 MiB", tooBig)
		f.message(s, "merged", whole)
		return f
	}
}

// slowReader writes 4,000 times 4 KB while nobody reads the watch, then reads.
// With compact it compacts everything first, and the end must be a cancel.
func slowReader(compact bool) Op {
	const puts = 4000
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		st, err := pb.NewWatchClient(s.Server.conn).Watch(ctx)
		if err == nil {
			err = st.Send(over("slow", "slox", 0))
		}
		if err == nil {
			_, err = st.Recv()
		}
		value := strings.Repeat("v", 4096)
		for i := 0; i < puts && err == nil; i++ {
			_, err = s.kv().Put(ctx, Put(fmt.Sprintf("slow%d", i%10), value))
		}
		if compact && err == nil {
			_, err = s.kv().Compact(ctx, Compact(puts+1))
		}
		f.status(s, err)
		if err != nil {
			return f
		}
		f.readSlowly(s, st, puts)
		return f
	}
}

func (f *Facts) readSlowly(s *Session, st pb.Watch_WatchClient, puts int) {
	next, noPrev := int64(2), 0
	for next < int64(puts)+2 {
		m, err := st.Recv()
		if err != nil {
			f.status(s, err)
			return
		}
		if m.Canceled {
			f.add("canceled before the end", true)
			f.message(s, "cancel", m)
			return
		}
		for _, e := range m.Events {
			if e.Kv.ModRevision != next {
				f.add("!order", fmt.Sprintf("revision %d, want %d", e.Kv.ModRevision, next))
				return
			}
			if e.PrevKv == nil {
				noPrev++
			}
			next++
		}
	}
	f.add("canceled before the end", false)
	f.add("events without prev_kv", noPrev)
}
