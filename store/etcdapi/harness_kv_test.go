package etcdapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// kvTest is a server with a fresh store and clients of its services.
type kvTest struct {
	*testing.T
	ctx    context.Context
	s      *Server
	target string
	kv     pb.KVClient
	watch  pb.WatchClient
	lease  pb.LeaseClient
}

func newKVTest(t *testing.T, cfg Config) *kvTest {
	t.Helper()
	s, addr := startServer(t, cfg)
	conn := dial(t, addr)
	return &kvTest{T: t, ctx: testContext(t), s: s, target: addr,
		kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn), lease: pb.NewLeaseClient(conn)}
}

func (t *kvTest) put(key, value string) int64 {
	t.Helper()
	return t.putLease(key, value, 0)
}

func (t *kvTest) putLease(key, value string, lease int64) int64 {
	t.Helper()
	resp, err := t.kv.Put(t.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

func (t *kvTest) del(key, end string) *pb.DeleteRangeResponse {
	t.Helper()
	resp, err := t.kv.DeleteRange(t.ctx, &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (t *kvTest) get(req *pb.RangeRequest) *pb.RangeResponse {
	t.Helper()
	resp, err := t.kv.Range(t.ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (t *kvTest) txn(req *pb.TxnRequest) *pb.TxnResponse {
	t.Helper()
	resp, err := t.kv.Txn(t.ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (t *kvTest) compact(rev int64) {
	t.Helper()
	if _, err := t.kv.Compact(t.ctx, &pb.CompactionRequest{Revision: rev, Physical: true}); err != nil {
		t.Fatal(err)
	}
}

// stream collects the chunks of a RangeStream.
func (t *kvTest) stream(req *pb.RangeRequest) ([]*pb.RangeResponse, error) {
	t.Helper()
	s, err := t.kv.RangeStream(t.ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return drainStream(s)
}

func drainStream(s grpc.ServerStreamingClient[pb.RangeStreamResponse]) (chunks []*pb.RangeResponse, err error) {
	for {
		resp, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return chunks, nil
		}
		if err != nil {
			return chunks, err
		}
		chunks = append(chunks, resp.RangeResponse)
	}
}

// show writes KeyValues as key=value(version,create,mod).
func show(kvs []*mvccpb.KeyValue) string {
	var b strings.Builder
	for i, kv := range kvs {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%s(%d,%d,%d)", kv.Key, kv.Value, kv.Version, kv.CreateRevision, kv.ModRevision)
	}
	return b.String()
}

func showKeys(kvs []*mvccpb.KeyValue) string {
	var keys []string
	for _, kv := range kvs {
		keys = append(keys, string(kv.Key))
	}
	return strings.Join(keys, " ")
}

func (t *kvTest) equal(what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// until waits for something that another goroutine brings about.
func (t *kvTest) until(what string, ok func() bool) {
	t.Helper()
	for !ok() {
		if t.ctx.Err() != nil {
			t.Fatalf("it never happened: %s", what)
		}
		runtime.Gosched()
	}
}

// watcher is one Watch stream.
type watcher struct {
	t *kvTest
	pb.Watch_WatchClient
}

func (t *kvTest) newWatch() *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.ctx)
	t.Cleanup(cancel)
	s, err := t.watch.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &watcher{t: t, Watch_WatchClient: s}
}

func (w *watcher) send(req *pb.WatchRequest) {
	w.t.Helper()
	if err := w.Send(req); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watcher) create(req *pb.WatchCreateRequest) {
	w.t.Helper()
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: req}})
}

func (w *watcher) cancel(id int64) {
	w.t.Helper()
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

func (w *watcher) progress() {
	w.t.Helper()
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

func (w *watcher) next() *pb.WatchResponse {
	w.t.Helper()
	resp, err := w.Recv()
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// want checks the next messages, one line each (see showWatch).
func (w *watcher) want(lines ...string) {
	w.t.Helper()
	for _, want := range lines {
		if got := showWatch(w.next()); got != want {
			w.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// showWatch writes a response as "ID @REVISION flags events".
func showWatch(r *pb.WatchResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d @%d", r.WatchId, r.Header.GetRevision())
	if r.Created {
		b.WriteString(" created")
	}
	if r.Canceled {
		b.WriteString(" canceled")
	}
	if r.CompactRevision != 0 {
		fmt.Fprintf(&b, " compacted %d", r.CompactRevision)
	}
	if r.CancelReason != "" {
		fmt.Fprintf(&b, " %q", r.CancelReason)
	}
	for _, e := range r.Events {
		fmt.Fprintf(&b, " %s %s", e.Type, show([]*mvccpb.KeyValue{e.Kv}))
		if e.PrevKv != nil {
			fmt.Fprintf(&b, " was %s", show([]*mvccpb.KeyValue{e.PrevKv}))
		}
	}
	return b.String()
}
