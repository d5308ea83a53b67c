package etcdapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func TestWatchCreate(t *testing.T) {
	const compacted = `"etcdserver: mvcc: required revision has been compacted"`
	k := newKVTest(t, Config{})
	k.put("a", "1") // 2
	a := []byte("a")
	w := k.newWatch()
	for _, tt := range []struct {
		name string
		req  *pb.WatchCreateRequest
		want string
	}{
		{"WCH-1", &pb.WatchCreateRequest{Key: a}, "0 @2 created"},
		{"WCH-4", &pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: a}, `-1 @2 created canceled "mvcc: watcher range is empty"`},
		{"WCH-9", &pb.WatchCreateRequest{Key: a, StartRevision: -1}, `-1 @2 created canceled ` + compacted},
		{"WCH-9/end below", &pb.WatchCreateRequest{Key: a, RangeEnd: []byte("A"), StartRevision: -1}, `-1 @2 created canceled ` + compacted},
		{"WCH-10", &pb.WatchCreateRequest{Key: a}, "1 @2 created"},
		{"WCH-11", &pb.WatchCreateRequest{Key: a, WatchId: 7}, "7 @2 created"},
		{"WCH-11/negative", &pb.WatchCreateRequest{Key: a, WatchId: -9}, "-9 @2 created"},
		{"WCH-12", &pb.WatchCreateRequest{Key: a, WatchId: 7}, `-1 @2 created canceled "mvcc: duplicate watch ID provided on the WatchStream"`},
		{"V-6", &pb.WatchCreateRequest{Key: a, WatchId: -1}, `-1 @2 created canceled "etcdserver: watch ID -1 is reserved for answers to progress requests"`},
		{"WCH-2", &pb.WatchCreateRequest{}, "2 @2 created"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.create(tt.req)
			if got := showWatch(w.next()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("WCH-19", func(t *testing.T) {
		w.send(&pb.WatchRequest{})
		w.create(&pb.WatchCreateRequest{Key: []byte("other"), WatchId: 50})
		w.want("50 @2 created")
	})
}

// Answers to creates come in the order of the requests, whether the store or the
// face gives them.
func TestWatchCreatesAreAnsweredInOrder(t *testing.T) {
	k := newKVTest(t, Config{})
	t.Run("WCH-20", func(t *testing.T) {
		w := k.newWatch()
		const n = 300
		for i := range n {
			req := &pb.WatchCreateRequest{Key: []byte("k"), WatchId: int64(i + 1)}
			if i%3 == 1 {
				req.WatchId = -1
			}
			w.create(req)
		}
		for i := range n {
			want := int64(i + 1)
			if i%3 == 1 {
				want = -1
			}
			if got := w.next(); got.WatchId != want {
				t.Fatalf("answer %d is for %d, want %d", i, got.WatchId, want)
			}
		}
	})
}

func TestWatchEvents(t *testing.T) {
	k := newKVTest(t, Config{})
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c"), PrevKv: true})
	w.create(&pb.WatchCreateRequest{Key: []byte("x"), Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT, 17}})
	w.want("0 @1 created", "1 @1 created")
	t.Run("WCH-25", func(t *testing.T) {
		k.put("a", "1")
		k.put("a", "2")
		k.del("a", "")
		w.want("0 @2 PUT a=1(1,2,2)",
			"0 @3 PUT a=2(2,2,3) was a=1(1,2,2)",
			"0 @4 DELETE a=(0,0,4) was a=2(2,2,3)")
	})
	t.Run("WCH-23", func(t *testing.T) {
		k.txn(&pb.TxnRequest{Success: []*pb.RequestOp{putValueOp("b", "1"), putOp("c"), putValueOp("a", "2")}})
		w.want("0 @5 PUT b=1(1,5,5) PUT a=2(1,5,5)")
	})
	t.Run("WCH-14", func(t *testing.T) {
		k.put("x", "1")
		k.del("x", "")
		w.want("1 @7 DELETE x=(0,0,7)")
	})
	t.Run("WCH-30", func(t *testing.T) {
		w.cancel(1)
		w.want("1 @7 canceled")
	})
	t.Run("WCH-31", func(t *testing.T) {
		w.cancel(1)
		w.cancel(99)
		k.put("a", "3")
		w.want("0 @8 PUT a=3(2,5,8) was a=2(1,5,5)")
	})
	t.Run("WCH-34", func(t *testing.T) {
		if err := w.CloseSend(); err != nil {
			t.Fatal(err)
		}
		k.del("a", "")
		w.want("0 @9 DELETE a=(0,0,9) was a=3(2,5,8)")
	})
}

// The sequence of 18.3.
func TestWatchAfterCompaction(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("cc", "1") // 2
	k.put("cc", "2") // 3
	k.put("cc", "3") // 4
	k.del("cc", "")  // 5
	k.put("cc", "4") // 6
	k.compact(5)
	for _, tt := range []struct {
		name  string
		start int64
		want  []string
	}{
		{"WCH-8", 4, []string{"0 @6 created", "0 @0 canceled compacted 5"}},
		{"WCH-6", 6, []string{"0 @6 created", "0 @6 PUT cc=4(1,6,6)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := *k
			k.T = t
			w := k.newWatch()
			w.create(&pb.WatchCreateRequest{Key: []byte("cc"), StartRevision: tt.start, PrevKv: true})
			w.want(tt.want...)
			if tt.name != "WCH-8" {
				return
			}
			w.cancel(0) // WCH-32
			w.want("0 @6 canceled")
		})
	}
}

func TestWatchProgress(t *testing.T) {
	var log logBuffer
	k := newKVTest(t, Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	w := k.newWatch()
	t.Run("WCH-42", func(t *testing.T) {
		w.progress() // no watch yet: dropped
		w.create(&pb.WatchCreateRequest{Key: []byte("a")})
		w.want("0 @1 created")
	})
	t.Run("TOP-2", func(t *testing.T) {
		w.progress()
		got := w.next()
		want := &pb.WatchResponse{Header: k.s.header(1), WatchId: -1}
		if !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		k.put("elsewhere", "x")
		w.progress()
		w.want("-1 @2")
	})
	k.until("the answer is logged", func() bool {
		return strings.Contains(log.String(), `msg="progress answered" revision=2 watch_id=-1`)
	})
	k.equal("answers", k.s.store.Counters().ProgressAnswered, 2)
}

// logBuffer is a Writer that can be read at the same time.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Progress must not overtake events.
func TestWatchProgressRace(t *testing.T) {
	k := newKVTest(t, Config{})
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte("a")})
	w.want("0 @1 created")
	t.Run("TOP-3", func(t *testing.T) {
		const puts = 300
		done := make(chan error, 1)
		go func() {
			for range puts {
				if _, err := k.kv.Put(k.ctx, &pb.PutRequest{Key: []byte("a")}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for range puts {
			w.progress()
		}
		seen := int64(1)
		for promised := int64(0); seen < puts+1; {
			r := w.next()
			if r.WatchId == -1 {
				promised = max(promised, r.Header.Revision)
				if promised > seen {
					t.Fatalf("revision %d was promised, events were sent up to %d", promised, seen)
				}
				continue
			}
			for _, e := range r.Events {
				if e.Kv.ModRevision != seen+1 {
					t.Fatalf("event %d after %d", e.Kv.ModRevision, seen)
				}
				seen++
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWatchSlowReaderLosesNothing(t *testing.T) {
	k := newKVTest(t, Config{})
	slow, fast := k.newWatch(), k.newWatch()
	for _, w := range []*watcher{slow, fast} {
		w.create(&pb.WatchCreateRequest{Key: []byte("a"), PrevKv: true})
		w.want("0 @1 created")
	}
	value := strings.Repeat("x", 4000)
	t.Run("WCH-29", func(t *testing.T) {
		const puts = 1000
		for range puts {
			k.put("a", value)
			fast.next()
		}
		for seen := 0; seen < puts; {
			for _, e := range slow.next().Events {
				seen++
				if e.Kv.Version != int64(seen) || (e.PrevKv != nil) != (seen > 1) {
					t.Fatalf("event %d has version %d, previous %v", seen, e.Kv.Version, e.PrevKv != nil)
				}
			}
		}
	})
}

func TestWatchFragments(t *testing.T) {
	k := newKVTest(t, Config{})
	ops := make([]*pb.RequestOp, 0, 3)
	for i := range 3 {
		key := fmt.Sprintf("big/%d", i)
		ops = append(ops, delOp(key, ""))
		k.put(key, strings.Repeat("v", 1_200_000))
	}
	whole, parts := k.newWatch(), k.newWatch()
	whole.create(&pb.WatchCreateRequest{Key: []byte("big/"), RangeEnd: []byte("big0"), PrevKv: true})
	parts.create(&pb.WatchCreateRequest{Key: []byte("big/"), RangeEnd: []byte("big0"), PrevKv: true, Fragment: true})
	whole.want("0 @4 created")
	parts.want("0 @4 created")
	k.txn(&pb.TxnRequest{Success: ops})
	t.Run("WCH-27", func(t *testing.T) {
		var merged *pb.WatchResponse
		for i := range 3 {
			r := parts.next()
			if r.Fragment != (i < 2) || len(r.Events) != 1 || r.Header.Revision != 5 {
				t.Fatalf("part %d: fragment %v, %d events, header %v", i, r.Fragment, len(r.Events), r.Header)
			}
			r.Fragment = false
			if merged == nil {
				merged = r
			} else {
				merged.Events = append(merged.Events, r.Events...)
			}
		}
		all, err := whole.Recv()
		if err != nil {
			t.Skipf("this client takes no whole one: %v", err)
		}
		if !proto.Equal(merged, all) {
			t.Error("the parts are not the whole")
		}
	})
}

func TestWatchEnds(t *testing.T) {
	t.Run("V-18", func(t *testing.T) {
		k := newKVTest(t, Config{})
		w := k.newWatch()
		w.create(&pb.WatchCreateRequest{Key: []byte("a")})
		w.want("0 @1 created")
		if err := k.s.Stop(k.ctx); err != nil {
			t.Error(err)
		}
		_, err := w.Recv()
		wantStatus(t, err, codes.Unavailable, "etcdserver: server stopped")
	})
	t.Run("V-18/client that does not read", func(t *testing.T) {
		k := newKVTest(t, Config{})
		w := k.newWatch()
		w.create(&pb.WatchCreateRequest{Key: []byte("a")})
		w.want("0 @1 created")
		for range 100 {
			k.put("a", strings.Repeat("x", 100_000))
		}
		if err := k.s.Stop(k.ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("WCH-35", func(t *testing.T) {
		k := newKVTest(t, Config{})
		ctx, cancel := context.WithCancel(k.ctx)
		s, err := k.watch.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{t: k, Watch_WatchClient: s}
		w.create(&pb.WatchCreateRequest{Key: []byte("a")})
		w.want("0 @1 created")
		cancel()
		_, err = w.Recv()
		wantStatus(t, err, codes.Canceled, "context canceled")
		k.until("the store forgets the stream", func() bool { return k.s.store.Status().Streams == 0 })
	})
}

func TestIdleWatchHasNoSender(t *testing.T) {
	k := newKVTest(t, Config{})
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte("a")})
	w.want("0 @1 created")
	k.put("a", "1")
	w.want("0 @2 PUT a=1(1,2,2)")
	stacks := make([]byte, 1<<20)
	k.until("the sender ends", func() bool {
		n := runtime.Stack(stacks, true)
		return !bytes.Contains(stacks[:n], []byte("(*watchStream).send("))
	})
	k.put("a", "2") // and another one starts
	w.want("0 @3 PUT a=2(2,2,3)")
}
