package difftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"google.golang.org/protobuf/proto"
)

// pending is a call that has not been answered yet, or is a stream of leaders.
type pending struct {
	cancel context.CancelFunc
	leader chan *v3electionpb.LeaderResponse // of a stream
	end    chan struct{}                     // closed when facts are there
	facts  Facts
}

func (p *pending) ended(wait time.Duration) bool {
	select {
	case <-p.end:
		return true
	case <-time.After(wait):
		return false
	}
}

// start runs a call in the background.
func (s *Session) start(ctx context.Context, name string, call func(context.Context, *pending) Facts) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &pending{cancel: cancel, leader: make(chan *v3electionpb.LeaderResponse, 1000), end: make(chan struct{})}
	s.pending[name] = p
	go func() {
		defer close(p.end)
		p.facts = call(ctx, p)
	}()
}

// Begin starts a call that waits in a queue and names it. It is in the queue when
// key exists.
func Begin(name, key string, req proto.Message, opts ...CallOption) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		s.start(ctx, name, func(ctx context.Context, _ *pending) Facts { return Call(req, opts...)(ctx, s) })
		ctx, _ = s.options(ctx, opts)
		for end := time.Now().Add(recvTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			r, err := s.kv().Range(ctx, &pb.RangeRequest{Key: []byte(key)})
			if err != nil {
				f.status(s, err)
				return f
			}
			if r.Count == 1 {
				f.message(s, "msg", r)
				return f
			}
		}
		f.add("!missing", key)
		return f
	}
}

// Waits compares that a call is not answered for a while.
func Waits(name string) Op {
	return func(_ context.Context, s *Session) Facts {
		if p := s.pending[name]; p.ended(quietTime) {
			return p.facts
		}
		return Facts{{"waits", "true"}}
	}
}

// End compares the answer of a call that waited.
func End(name string) Op {
	return func(_ context.Context, s *Session) Facts {
		p := s.pending[name]
		delete(s.pending, name)
		defer p.cancel()
		if !p.ended(recvTimeout) {
			return Facts{{"!missing", "the answer"}}
		}
		return p.facts
	}
}

// GiveUp cancels a call that waits.
func GiveUp(name string) Op {
	return func(_ context.Context, s *Session) Facts {
		s.pending[name].cancel()
		return End(name)(nil, s)
	}
}

// Observe opens a stream of leaders and names it.
func Observe(name, election string, opts ...CallOption) Op {
	return func(ctx context.Context, s *Session) Facts {
		ctx, _ = s.options(ctx, opts)
		s.start(ctx, name, func(ctx context.Context, p *pending) Facts {
			var f Facts
			st, err := v3electionpb.NewElectionClient(s.Server.conn).Observe(ctx, &v3electionpb.LeaderRequest{Name: []byte(election)})
			for err == nil {
				var m *v3electionpb.LeaderResponse
				if m, err = st.Recv(); err == nil {
					p.leader <- m
				}
			}
			f.streamEnd(s, err)
			return f
		})
		return nil
	}
}

// Leaders compares the next n messages of a stream of leaders, and that no other
// comes for a while.
func Leaders(name string, n int) Op {
	return func(_ context.Context, s *Session) Facts {
		var f Facts
		for i := range n + 1 {
			wait := recvTimeout
			if i == n {
				wait = quietTime
			}
			select {
			case m := <-s.pending[name].leader:
				f.message(s, fmt.Sprintf("leader[%d]", i), m)
			case <-time.After(wait):
				if i < n {
					f.add("!missing", fmt.Sprintf("%d of %d leaders", n-i, n))
				}
				return f
			}
		}
		return f
	}
}

// OwnLease sends a request without a lease and compares the lease that the only
// key below prefix has then, whose ID is random.
func OwnLease(req proto.Message, prefix string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f, ignored Facts
		_, err := s.invoke(ctx, &ignored, req)
		f.status(s, err)
		r, err := s.kv().Range(ctx, List(prefix+"/", prefix+"0"))
		if err == nil && len(r.Kvs) != 1 {
			err = errors.New("not one key")
		}
		if err != nil {
			f.add("!key", err)
			return f
		}
		kv := r.Kvs[0]
		f.add("positive", kv.Lease > 0)
		f.add("key is of the lease", string(kv.Key) == fmt.Sprintf("%s/%x", prefix, kv.Lease))
		l, err := pb.NewLeaseClient(s.Server.conn).LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: kv.Lease})
		f.status(s, err)
		f.add("granted", l.GetGrantedTTL())
		return f
	}
}

// LeaseCount compares how many leases there are.
func LeaseCount() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		r, err := pb.NewLeaseClient(s.Server.conn).LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
		f.status(s, err)
		f.add("leases", len(r.GetLeases()))
		return f
	}
}
