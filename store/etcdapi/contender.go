package etcdapi

import (
	"context"
	"errors"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/auth"
)

// sessionTTL is the time in seconds of a lease that a client did not bring.
const sessionTTL = 60

// contender is one key in the queue for a lock or an election. The queue is all
// keys below a prefix in the order in which they were created; the first one has
// what the others wait for. The keys are etcd's, so its client libraries can
// stand in the same queue.
type contender struct {
	s       *Server
	kv      innerKV
	prefix  []byte
	key     []byte
	lease   int64
	created int64 // create revision of key
}

// session returns the lease to use: the given one, of which nothing is checked
// yet, or for 0 a new one. Keeping it alive is the client's affair.
func (s *Server) session(ctx context.Context, lease int64) (int64, error) {
	if lease != 0 {
		return lease, nil
	}
	return s.inner().grant(ctx, sessionTTL)
}

// queuePrefix is what the keys of all contenders for a name begin with.
func queuePrefix(name []byte) []byte {
	return append(append(make([]byte, 0, len(name)+1), name...), '/')
}

// firstOf asks for the contender that has what the others wait for.
func firstOf(prefix []byte) *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: prefix, RangeEnd: prefixEnd(prefix), Limit: 1,
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND,
	}
}

// prefixEnd is the end of the range of all keys below a queue's prefix, whose
// last byte is a slash.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	end[len(end)-1]++
	return end
}

// entry is how a contender came in.
type entry struct {
	contender
	header *pb.ResponseHeader
	first  bool             // it has what the others wait for
	before *mvccpb.KeyValue // the lease's key if it was in the queue already
}

// enter puts a key for a lease into the queue for name, or finds the one that
// is there.
func (s *Server) enter(ctx context.Context, name []byte, lease int64, value []byte) (*entry, error) {
	lease, err := s.session(ctx, lease)
	if err != nil {
		return nil, err
	}
	e := &entry{contender: contender{s: s, kv: s.inner(), prefix: queuePrefix(name), lease: lease}}
	e.key = strconv.AppendInt(append([]byte(nil), e.prefix...), lease, 16)
	first := thenRange(firstOf(e.prefix))
	resp, err := e.kv.txn(ctx, &pb.TxnRequest{
		Compare: createdAt(e.key, 0),
		Success: []*pb.RequestOp{thenPut(&pb.PutRequest{Key: e.key, Value: value, Lease: lease}), first},
		Failure: []*pb.RequestOp{thenRange(&pb.RangeRequest{Key: e.key}), first},
	})
	if err != nil {
		return nil, err
	}
	e.header, e.created = resp.Header, resp.Header.Revision
	if !resp.Succeeded {
		e.before = resp.Responses[0].GetResponseRange().Kvs[0]
		e.created = e.before.CreateRevision
	}
	owners := resp.Responses[1].GetResponseRange().Kvs
	e.first = len(owners) == 0 || owners[0].CreateRevision == e.created
	return e, nil
}

// wait returns when no key is before the contender's any more, with the header
// of the read that showed it.
//
// lost is returned when the contender's own key is gone: its lease has ended, or
// somebody has deleted it. For every other error the key is taken out of the
// queue, so that nobody waits for a client that has given up.
func (c *contender) wait(ctx context.Context, lost error) (*pb.ResponseHeader, error) {
	c.s.log.Debug("waiting in a queue", "key", string(c.key), "created", c.created)
	header, err := c.untilFirst(ctx, lost)
	if err != nil && !errors.Is(err, lost) {
		c.withdraw(ctx)
	}
	c.s.log.Debug("waited in a queue", "key", string(c.key), "created", c.created, "error", err)
	return header, err
}

func (c *contender) untilFirst(ctx context.Context, lost error) (*pb.ResponseHeader, error) {
	ahead := &pb.RangeRequest{
		Key: c.prefix, RangeEnd: prefixEnd(c.prefix), Limit: 1, KeysOnly: true,
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_DESCEND,
		MaxCreateRevision: c.created - 1,
	}
	for {
		before, err := c.kv.get(ctx, ahead)
		if err != nil {
			return nil, err
		}
		// After it: whoever is first stays so while its key exists.
		own, err := c.kv.get(ctx, &pb.RangeRequest{Key: c.key, KeysOnly: true})
		switch {
		case err != nil:
			return nil, err
		case len(own.Kvs) == 0 || own.Kvs[0].CreateRevision != c.created:
			return nil, lost
		case len(before.Kvs) == 0:
			return own.Header, nil
		}
		if err := c.untilChanged(ctx, own.Header.Revision, before.Kvs[0].Key, before.Header.Revision); err != nil {
			return nil, err
		}
	}
}

// untilChanged waits until the contender's own key or the one before it is
// deleted; each was there at the revision beside it. It may return early.
func (c *contender) untilChanged(ctx context.Context, ownAt int64, before []byte, beforeAt int64) error {
	r := c.s.newEventReader()
	defer r.close()
	for _, w := range []store.WatchRequest{
		{KeyRange: store.KeyRange{Key: c.key}, Start: ownAt + 1, NoPut: true},
		{KeyRange: store.KeyRange{Key: before}, Start: beforeAt + 1, NoPut: true},
	} {
		if err := r.watch(w); err != nil {
			return err
		}
	}
	for {
		m, err := r.next(ctx)
		if err != nil {
			return err
		}
		// Canceled: a compaction was faster. Reading again tells how things are.
		if m.Kind == store.WatchEvents || m.Kind == store.WatchCanceled {
			return nil
		}
	}
}

// withdraw deletes the contender's key, also when its client is gone. It goes to
// the store directly: who could create the key may delete it, and a token that
// has run out while waiting must not leave it behind.
func (c *contender) withdraw(ctx context.Context) {
	res, err := c.s.store.Txn(auth.Trusted(context.WithoutCancel(ctx)), txnRequest(&pb.TxnRequest{
		Compare: createdAt(c.key, c.created), Success: []*pb.RequestOp{thenDelete(&pb.DeleteRangeRequest{Key: c.key})},
	}))
	if err != nil {
		c.s.log.Warn("a key of a client that has given up waiting stays until its lease ends",
			"key", string(c.key), "lease", c.lease, "error", err)
		return
	}
	res.Close()
}
