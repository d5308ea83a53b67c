package main

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// tamperEvery is how many chances to do wrong are let pass for each that is taken.
const tamperEvery = 30

const (
	watchMethod = "/etcdserverpb.Watch/Watch"
	rangeMethod = "/etcdserverpb.KV/Range"
)

// eventTamper decides about a response with events. It returns what is sent in its
// place, or nil if it has no use for this one. A response that it returns as hold is
// sent after the next events of its watch.
type eventTamper func(r *pb.WatchResponse) (send []*pb.WatchResponse, hold *pb.WatchResponse)

// onEvents lets a tamper have one in tamperEvery of the responses that it can use, on all
// streams together.
func onEvents(do eventTamper) func() tamperer {
	return func() tamperer {
		e := &every{n: tamperEvery}
		return func(method string) tamper {
			if method != watchMethod {
				return nil
			}
			return &eventStream{do: do, every: e}
		}
	}
}

// eventStream tampers with one watch stream.
type eventStream struct {
	do    eventTamper
	every *every
	held  *pb.WatchResponse // waits for the next events of its watch
}

func (*eventStream) request(m []byte) []byte { return m }

func (s *eventStream) response(m []byte) [][]byte {
	r := &pb.WatchResponse{}
	if proto.Unmarshal(m, r) != nil {
		return [][]byte{m}
	}
	if held := s.held; held != nil {
		switch {
		case r.Canceled || len(r.Events) > 0 && r.WatchId == held.WatchId:
			s.held = nil
			return encode(r, held)
		case len(r.Events) == 0:
			return nil // no progress past what is held
		}
	}
	if len(r.Events) == 0 {
		return [][]byte{m}
	}
	send, hold := s.do(proto.Clone(r).(*pb.WatchResponse))
	if send == nil && hold == nil || s.held != nil || !s.every.now() {
		return [][]byte{m}
	}
	s.held = hold
	return encode(send...)
}

func encode(responses ...*pb.WatchResponse) (messages [][]byte) {
	for _, r := range responses {
		m, err := proto.Marshal(r)
		if err != nil {
			panic(err) // it was decoded a moment ago
		}
		messages = append(messages, m)
	}
	return messages
}

// dropEvent loses the first event of a response with several, so that others of the
// watch come after it for sure.
func dropEvent(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) {
	if len(r.Events) < 2 {
		return nil, nil
	}
	r.Events = append(r.Events[:0], r.Events[1:]...)
	return []*pb.WatchResponse{r}, nil
}

func duplicateEvent(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) {
	r.Events = append(r.Events, r.Events[len(r.Events)-1])
	return []*pb.WatchResponse{r}, nil
}

// earlyProgress tells of progress to a revision before its events.
func earlyProgress(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) {
	progress := &pb.WatchResponse{Header: proto.Clone(r.Header).(*pb.ResponseHeader), WatchId: r.WatchId}
	progress.Header.Revision = r.Events[len(r.Events)-1].Kv.ModRevision
	return []*pb.WatchResponse{progress, r}, nil
}

// reorderEvents sends a response after the one that follows it.
func reorderEvents(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) { return nil, r }

// splitRevision spreads the events of a revision over two responses.
func splitRevision(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) {
	for i := 1; i < len(r.Events); i++ {
		if r.Events[i].Kv.ModRevision != r.Events[i-1].Kv.ModRevision {
			continue
		}
		rest := proto.Clone(r).(*pb.WatchResponse)
		r.Events, rest.Events = r.Events[:i], rest.Events[i:]
		return []*pb.WatchResponse{r, rest}, nil
	}
	return nil, nil
}

func wrongPrevKV(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) {
	for _, e := range r.Events {
		if e.PrevKv != nil && e.Type == mvccpb.Event_PUT {
			e.PrevKv.Value = e.Kv.Value
			return []*pb.WatchResponse{r}, nil
		}
	}
	return nil, nil
}

func missingPrevKV(r *pb.WatchResponse) ([]*pb.WatchResponse, *pb.WatchResponse) {
	for _, e := range r.Events {
		if e.PrevKv != nil {
			e.PrevKv = nil
			return []*pb.WatchResponse{r}, nil
		}
	}
	return nil, nil
}
