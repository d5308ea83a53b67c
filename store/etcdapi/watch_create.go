package etcdapi

import (
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

// Reasons for a watch that can not be created. The first two are etcd's texts.
const (
	reasonEmptyRange = "mvcc: watcher range is empty"
	reasonIDInUse    = "mvcc: duplicate watch ID provided on the WatchStream"
	reasonReservedID = "etcdserver: watch ID -1 is reserved for answers to progress requests"
)

// create makes a watch. The store queues the answer if it accepts. w.mu is held,
// so that the sender knows which watches want fragments before it has an event.
func (w *watchStream) create(r *pb.WatchCreateRequest) {
	if r.StartRevision < 0 { // before all else: etcd's order (WCH-9)
		w.refuse(rpctypes.ErrorDesc(rpctypes.ErrGRPCCompacted))
		return
	}
	if r.WatchId == store.ProgressID {
		w.refuse(reasonReservedID)
		return
	}
	req := watchRequest(r)
	if err := w.permit(&req); err != nil {
		w.refuse(refusal(err))
		return
	}
	id, err := w.events.Create(req)
	if err != nil {
		w.refuse(refusal(err))
		return
	}
	w.created++
	if r.Fragment {
		if w.fragment == nil {
			w.fragment = make(map[int64]uint64)
		}
		w.fragment[id] = w.created
	} else {
		delete(w.fragment, id)
	}
}

// permit checks that the sender may read the range, and has it checked again when the
// watch begins: until then it could have been revoked.
func (w *watchStream) permit(req *store.WatchRequest) error {
	if !w.s.store.Auth().Enabled() {
		return nil
	}
	ctx, err := w.s.identified(w.grpc.Context())
	if err != nil {
		return err
	}
	keys := req.KeyRange
	req.Permit = func() error { return toStatus(w.s.store.PermitRead(ctx, keys)) }
	return req.Permit()
}

// watchRequest converts a request. An empty key is the smallest one (WCH-2);
// filters that do not exist filter nothing (WCH-14).
func watchRequest(r *pb.WatchCreateRequest) store.WatchRequest {
	req := store.WatchRequest{
		KeyRange: store.KeyRange{Key: r.Key, End: r.RangeEnd},
		ID:       r.WatchId,
		Start:    r.StartRevision,
		PrevKV:   r.PrevKv,
		Progress: r.ProgressNotify,
	}
	if len(req.Key) == 0 {
		req.Key = []byte{0}
	}
	for _, f := range r.Filters {
		switch f {
		case pb.WatchCreateRequest_NOPUT:
			req.NoPut = true
		case pb.WatchCreateRequest_NODELETE:
			req.NoDelete = true
		}
	}
	return req
}

func refusal(err error) string {
	if _, ok := status.FromError(err); ok {
		return err.Error() // of permit: with its code, unlike the others (WCH-18)
	}
	switch {
	case errors.Is(err, store.ErrEmptyRange):
		return reasonEmptyRange
	case errors.Is(err, store.ErrWatchIDInUse):
		return reasonIDInUse
	default:
		return rpctypes.ErrorDesc(toStatus(err))
	}
}

// refuse answers that a watch was created and canceled at once, which is how
// clients learn of it. w.mu is held.
func (w *watchStream) refuse(reason string) {
	m := watchHead{
		head:     w.s.head(w.s.store.Revision()),
		id:       store.ProgressID,
		created:  true,
		canceled: true,
		reason:   reason,
	}
	w.replies = append(w.replies, watchReply{message: m.encode(), after: w.created})
	w.wake()
}
