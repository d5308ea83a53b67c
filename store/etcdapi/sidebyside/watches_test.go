package main

import (
	"net"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// scripted sends the same responses to every watch.
type scripted struct {
	pb.UnimplementedWatchServer
	responses []*pb.WatchResponse
}

func (s *scripted) Watch(stream pb.Watch_WatchServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for _, r := range s.responses {
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func events(revisions ...int64) *pb.WatchResponse {
	r := &pb.WatchResponse{Header: &pb.ResponseHeader{}}
	for _, rev := range revisions {
		r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("a"), ModRevision: rev, Value: newValue(100)}})
	}
	return r
}

func created() *pb.WatchResponse { return &pb.WatchResponse{Created: true} }

// openScripted begins two watches on a server with a script, from revision 10 on.
func openScripted(t *testing.T, responses ...*pb.WatchResponse) *watches {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterWatchServer(s, &scripted{responses: responses})
	go s.Serve(l)
	t.Cleanup(s.Stop)
	conn := dial(l.Addr().String())
	t.Cleanup(func() { conn.Close() })
	w := newWatches(t.Context())
	w.patience = 300 * time.Millisecond
	t.Cleanup(func() { _ = w.close() })
	for range 2 {
		if _, err := w.open(conn, "a", 10, nil); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestWatchesCount(t *testing.T) {
	progress := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 12}}
	answer := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 12}, WatchId: -1}
	w := openScripted(t, created(), progress, answer, answer, events(10, 11), events(11, 12))
	w.patience = awaitTimeout
	if err := w.created(); err != nil {
		t.Fatal(err)
	}
	if err := w.await(4); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range w.list {
		if x.progress.Load() != 1 || x.answers.Load() != 2 || x.last != 12 {
			t.Errorf("%d progress messages, %d answers, last revision %d", x.progress.Load(), x.answers.Load(), x.last)
		}
	}
}

func TestBadWatchesFail(t *testing.T) {
	for name, c := range map[string]struct {
		responses []*pb.WatchResponse
		want      string
	}{
		"missing":          {[]*pb.WatchResponse{created(), events(10, 11)}, "got only 2 events of 3 changes"},
		"too many":         {[]*pb.WatchResponse{created(), events(10, 11, 12, 13)}, "got 4 events of 3 changes"},
		"order":            {[]*pb.WatchResponse{created(), events(12, 11, 13)}, "revision 11 after one at 12"},
		"before its start": {[]*pb.WatchResponse{created(), events(8, 11, 12)}, "revision 8 after one at 9"},
		"canceled":         {[]*pb.WatchResponse{created(), {Canceled: true}}, "canceled"},
		"created twice":    {[]*pb.WatchResponse{created(), created()}, "created twice"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := openScripted(t, c.responses...).await(3); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("never created", func(t *testing.T) {
		if err := openScripted(t).created(); err == nil {
			t.Error("a watch that was not created passes for one that was")
		}
	})
}
