package etcdapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
)

// The tests of this file are named after bugs that etcd and kine had: each fails if this
// server does what theirs did. docs/compatibility.md lists them.

// Over TLS, etcd's HTTP/2 server let large lists push a watch of the same connection aside: its
// events came when the lists had ended. Here lists go on, and some are not even read, until all
// events are there.
func TestEtcd15402WatchBesideLargeLists(t *testing.T) {
	ca := newTestCA(t)
	s, addr := startServer(t, Config{TLS: ca.server(nil), ListBudget: 4 << 20})
	conn := dial(t, addr, grpc.WithTransportCredentials(credentials.NewTLS(ca.client())))
	ctx, cancel := context.WithCancel(testContext(t))
	k := &kvTest{T: t, ctx: ctx, s: s, kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn)}
	k.fill(1000, 4000)
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte("a"), PrevKv: true})
	w.next()

	ended := make(chan error, 16)
	lists := 0
	for range 4 {
		lists++
		go func() {
			for {
				stream, err := k.kv.RangeStream(ctx, &underP)
				for err == nil {
					_, err = stream.Recv()
				}
				if !errors.Is(err, io.EOF) {
					ended <- err
					return
				}
			}
		}()
	}
	for range 4 { // the client takes a first chunk, and no more
		lists++
		stream, err := k.kv.RangeStream(ctx, &underP)
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-ctx.Done()
			for err == nil {
				_, err = stream.Recv()
			}
			ended <- err
		}()
	}
	for i := range 50 {
		rev := k.put("a", fmt.Sprint(i))
		if got := w.next(); len(got.Events) != 1 || got.Events[0].Kv.ModRevision != rev {
			t.Fatalf("got %v, want the event of revision %d", got, rev)
		}
	}
	select {
	case err := <-ended:
		t.Errorf("a list ended before the events were there: %v", err)
	default:
	}
	cancel()
	for range lists {
		<-ended
	}
}

// Members of etcd left out the ranges of a transaction whose client was not their own, and so did not
// notice that one had to fail it. Here a range at a revision of its own is executed where it
// stands, or fails the transaction as a whole, at all depths.
func TestEtcd21432RangeAtARevisionWithinTxn(t *testing.T) {
	k := newKVTest(t, Config{})
	for i := range 5 {
		k.put("k", fmt.Sprint(i)) // 2 to 6
	}
	k.compact(4)
	at := func(rev int64) *pb.RequestOp {
		op := getOp("k")
		op.GetRequestRange().Revision = rev
		return op
	}
	base := k.put("other", "x") // 7
	resp := k.txn(&pb.TxnRequest{Success: []*pb.RequestOp{putValueOp("k", "new"), at(4), at(5), at(0), at(7),
		txnOp([]*pb.RequestOp{at(6), putOp("b")}, []*pb.RequestOp{at(2)})}})
	var got []string
	for i := range 4 {
		got = append(got, show(resp.Responses[1+i].GetResponseRange().Kvs))
	}
	got = append(got, show(resp.Responses[5].GetResponseTxn().Responses[0].GetResponseRange().Kvs))
	k.equal("ranges", got, []string{"k=2(3,2,4)", "k=3(4,2,5)", "k=new(6,2,8)", "k=4(5,2,6)", "k=4(5,2,6)"})
	k.equal("revision", resp.Header.Revision, base+1)

	const (
		compacted = "etcdserver: mvcc: required revision has been compacted"
		future    = "etcdserver: mvcc: required revision is a future revision"
	)
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	w.want("0 @8 created")
	for _, tt := range []struct {
		name string
		ops  []*pb.RequestOp
		text string
	}{
		{"compacted", []*pb.RequestOp{putOp("x"), at(3)}, compacted},
		{"the revision of the transaction itself", []*pb.RequestOp{putOp("x"), at(9)}, future},
		{"nested compacted", []*pb.RequestOp{putOp("x"), txnOp([]*pb.RequestOp{putOp("y"), at(3)}, nil)}, compacted},
		{"nested future", []*pb.RequestOp{txnOp([]*pb.RequestOp{at(9)}, nil), delOp("k", "")}, future},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := k.kv.Txn(k.ctx, &pb.TxnRequest{Success: tt.ops})
			wantStatus(t, err, codes.OutOfRange, tt.text)
		})
	}
	if got := k.get(&pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}); got.Header.Revision != 8 || got.Count != 3 {
		t.Errorf("revision %d and %d keys after transactions that failed", got.Header.Revision, got.Count)
	}
	k.put("last", "")
	w.want("0 @9 PUT last=(1,9,9)")
}

// kine's users found that a read of one resource's prefix shows the revision of the whole store,
// and thought that wrong. It is right: kube-apiserver waits until its cache has reached it. What
// was missing is the progress that brings the cache of a quiet resource there.
func TestKine255RevisionOfAQuietPrefix(t *testing.T) {
	k := newKVTest(t, Config{})
	k.put("/registry/pods/a", "1") // 2
	list := k.get(&pb.RangeRequest{Key: []byte("/registry/pods/"), RangeEnd: []byte("/registry/pods0")})
	w := k.newWatch()
	w.create(&pb.WatchCreateRequest{Key: []byte("/registry/pods/"), RangeEnd: []byte("/registry/pods0"),
		StartRevision: list.Header.Revision + 1, PrevKv: true, ProgressNotify: true})
	w.want("0 @2 created")
	for i := range 5 {
		rev := k.put("/registry/leases/b", fmt.Sprint(i))
		for _, req := range []*pb.RangeRequest{
			{Key: []byte("/registry/pods"), Limit: 1}, // a key that there never is: only the header is wanted
			{Key: []byte("/registry/pods/"), RangeEnd: []byte("/registry/pods0"), Limit: 1},
			{Key: []byte("/registry/pods/"), RangeEnd: []byte("/registry/pods0"), Revision: 2},
			{Key: []byte("/registry/none/"), RangeEnd: []byte("/registry/none0"), CountOnly: true},
		} {
			if got := k.get(req).Header.Revision; got != rev {
				t.Errorf("%v: revision %d, want %d", req, got, rev)
			}
			if chunks, err := k.stream(req); err != nil || merge(chunks).Header.Revision != rev {
				t.Errorf("%v as a stream: %v, %v, want revision %d", req, chunks, err, rev)
			}
		}
		w.progress()
		w.want(fmt.Sprint("-1 @", rev))
	}
}
