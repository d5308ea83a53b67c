package etcdapi

import (
	"bytes"
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

type observeStream = grpc.ServerStreamingServer[concurrencypb.LeaderResponse]

// Observe sends the leader's key, each change of it, and when it is gone the next
// leader's. It ends when the client goes or the server stops.
func (e electionService) Observe(r *concurrencypb.LeaderRequest, stream observeStream) error {
	o := &observer{s: e.s, prefix: queuePrefix(r.Name), stream: stream}
	for {
		if err := o.term(stream.Context()); err != nil {
			return toSessionStatus(err)
		}
	}
}

// observer is one Observe call.
type observer struct {
	s      *Server
	prefix []byte
	stream observeStream
	sent   *mvccpb.KeyValue // the last
}

// term finds a leader, waiting for one if need be, and follows it until its key
// is deleted. It may also return because a compaction was faster: then the next
// one goes on with what is there.
func (o *observer) term(ctx context.Context) error {
	resp, err := o.s.inner().get(ctx, firstOf(o.prefix))
	if err != nil {
		return err
	}
	var leader *mvccpb.KeyValue
	header := resp.Header
	if len(resp.Kvs) > 0 {
		leader = resp.Kvs[0]
	} else if leader, err = o.firstPut(ctx, header.Revision+1); err != nil || leader == nil {
		return err
	} else {
		header = o.s.header(leader.ModRevision)
	}
	if err := o.send(header, leader); err != nil {
		return err
	}
	return o.follow(ctx, leader.Key, header.Revision+1)
}

// firstPut waits for a key below the prefix; nil if a compaction was faster.
func (o *observer) firstPut(ctx context.Context, start int64) (*mvccpb.KeyValue, error) {
	r := o.s.newEventReader()
	defer r.close()
	keys := store.KeyRange{Key: o.prefix, End: prefixEnd(o.prefix)}
	if err := r.watch(store.WatchRequest{KeyRange: keys, Start: start, NoDelete: true}); err != nil {
		return nil, err
	}
	for {
		m, err := r.next(ctx)
		switch {
		case err != nil:
			return nil, err
		case m.Kind == store.WatchCanceled:
			return nil, nil
		case m.Kind == store.WatchEvents:
			return keyValue(m.Events[0])
		}
	}
}

// follow sends the changes of a key until it is deleted or a compaction was
// faster.
func (o *observer) follow(ctx context.Context, key []byte, start int64) error {
	r := o.s.newEventReader()
	defer r.close()
	if err := r.watch(store.WatchRequest{KeyRange: store.KeyRange{Key: key}, Start: start}); err != nil {
		return err
	}
	for {
		m, err := r.next(ctx)
		if err != nil {
			return err
		}
		if m.Kind == store.WatchCanceled {
			return nil
		}
		for _, e := range m.Events {
			if e.IsDelete() {
				return nil
			}
			kv, err := keyValue(e)
			if err != nil {
				return err
			}
			if err := o.send(o.s.header(m.Revision), kv); err != nil {
				return err
			}
		}
	}
}

// send sends what was not sent just before: it is met again after a compaction.
func (o *observer) send(header *pb.ResponseHeader, kv *mvccpb.KeyValue) error {
	if o.sent != nil && bytes.Equal(o.sent.Key, kv.Key) && o.sent.ModRevision == kv.ModRevision {
		return nil
	}
	o.sent = kv
	return o.stream.Send(&concurrencypb.LeaderResponse{Header: header, Kv: kv})
}

// keyValue is the record that a put has written.
func keyValue(e *store.Event) (*mvccpb.KeyValue, error) {
	var event mvccpb.Event
	if err := proto.Unmarshal(e.Encoded(false), &event); err != nil {
		return nil, fmt.Errorf("decode event of revision %d: %w", e.Revision(), err)
	}
	return event.Kv, nil
}
