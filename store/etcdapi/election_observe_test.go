package etcdapi

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// observed is an Observe call of a client.
type observed struct {
	*lockTest
	grpc.ServerStreamingClient[concurrencypb.LeaderResponse]
}

// observe begins an Observe call and returns when it watches something.
func (t *lockTest) observe(ctx context.Context) observed {
	t.Helper()
	stream, err := t.elections.Observe(ctx, &concurrencypb.LeaderRequest{Name: []byte("q")})
	if err != nil {
		t.Fatal(err)
	}
	t.until("it watches", func() bool { return t.s.store.Status().Watchers == 1 })
	return observed{t, stream}
}

func showLeader(r *concurrencypb.LeaderResponse) string {
	return fmt.Sprintf("%s=%s@%d", r.GetKv().GetKey(), r.GetKv().GetValue(), r.GetHeader().GetRevision())
}

func (o observed) want(leaders ...string) {
	o.Helper()
	for _, want := range leaders {
		r, err := o.Recv()
		if got := showLeader(r); err != nil || got != want {
			o.Fatalf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestObserve(t *testing.T) {
	t.Run("GRPC-15 follows the leaders", func(t *testing.T) {
		l := newLockTest(t)
		l.campaign(l.ctx, 1)
		ctx, cancel := context.WithCancel(l.ctx)
		o := l.observe(ctx)
		o.want("q/1=v@2")
		l.ok(l.proclaim("q/1", 2, 1, "w"))
		l.ok(l.proclaim("q/1", 2, 1, "x"))
		o.want("q/1=w@3", "q/1=x@4")
		l.putLease("q/2", "candidate", 2)
		l.ok(l.resign("q/1", 2))
		o.want("q/2=candidate@6")
		l.revoke(2)
		cancel()
		_, err := o.Recv()
		wantStatus(t, err, codes.Canceled, "context canceled")
		l.idle()
	})
	t.Run("GRPC-15 waits for a leader", func(t *testing.T) {
		l := newLockTest(t)
		o := l.observe(l.ctx)
		l.put("x", "1")
		l.campaign(l.ctx, 1)
		o.want("q/1=v@3")
		l.del("q/1", "")
		l.campaign(l.ctx, 2)
		// The next reading may come before or after the campaign: it is at revision 5.
		o.want("q/2=v@5")
	})
	t.Run("V-18 ends when the server stops", func(t *testing.T) {
		l := newLockTest(t)
		o := l.observe(l.ctx)
		if err := l.s.Stop(l.ctx); err != nil {
			t.Fatal(err)
		}
		_, err := o.Recv()
		wantStatus(t, err, codes.Unavailable, "etcdserver: server stopped")
		l.idle()
	})
}

// leaders collects what an observer sends, and ends its context with the last.
type leaders struct {
	grpc.ServerStreamingServer[concurrencypb.LeaderResponse]
	got  []string
	last string
	end  context.CancelFunc
}

func (s *leaders) Send(r *concurrencypb.LeaderResponse) error {
	s.got = append(s.got, showLeader(r))
	if s.got[len(s.got)-1] == s.last {
		s.end()
	}
	return nil
}

// TestObserveBehindCompaction has a compaction overtake an observer: it goes on with
// the newest value, and does not send one twice.
func TestObserveBehindCompaction(t *testing.T) {
	l := newLockTest(t)
	l.campaign(l.ctx, 1)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	stream := &leaders{last: "q/1=x@4", end: cancel}
	o := &observer{s: l.s, prefix: []byte("q/"), stream: stream}
	first, err := l.s.inner().get(l.ctx, firstOf(o.prefix))
	if err != nil {
		t.Fatal(err)
	}
	l.ok(o.send(first.Header, first.Kvs[0]))
	l.ok(o.send(first.Header, first.Kvs[0]))
	l.ok(l.proclaim("q/1", 2, 1, "w"))
	l.ok(l.proclaim("q/1", 2, 1, "x"))
	l.compact(4)
	l.ok(o.follow(ctx, []byte("q/1"), 3)) // lost: 3 is compacted
	if kv, err := o.firstPut(ctx, 3); kv != nil || err != nil {
		t.Errorf("first put: %v, %v", kv, err)
	}
	for err == nil {
		err = o.term(ctx)
	}
	l.equal("sent", stream.got, []string{"q/1=v@2", "q/1=x@4"})
	l.idle()
}
