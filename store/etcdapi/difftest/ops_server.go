package difftest

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Restart ends the server (clean: SIGTERM, otherwise SIGKILL) and starts it
// again on the same data. Open watch streams are forgotten.
func Restart(clean bool) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		s.close()
		if err := s.Server.Stop(!clean); err != nil {
			f.add("!stop", err)
		}
		if err := s.Server.Start(ctx); err != nil {
			f.add("!start", err)
		}
		return f
	}
}

// Pause lets time pass that the step after it depends on, such as the life of a lease.
func Pause(d time.Duration) Op {
	return func(ctx context.Context, _ *Session) Facts {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return nil
	}
}

// State compares the whole data: all keys and the hash at the readable
// revisions, or at about 40 of them spread evenly if there are more. It compares
// nothing when the histories differ, as after fill.
func State() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		if s.shift != 0 {
			return f
		}
		h, err := pb.NewMaintenanceClient(s.Server.conn).HashKV(ctx, &pb.HashKVRequest{})
		if err != nil {
			f.status(s, err)
			return f
		}
		f.message(s, "hash", h)
		first, current := max(h.CompactRevision, 1), h.Header.Revision
		f.add("readable", fmt.Sprintf("%d to %d", first, current))
		for rev := current; rev >= first; rev -= 1 + (current-first)/40 {
			r, err := s.kv().Range(ctx, &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Revision: rev})
			if err != nil {
				f.status(s, err)
				break
			}
			f.message(s, fmt.Sprintf("range at %d", rev), r)
			f.hashKV(ctx, s, rev)
		}
		return f
	}
}

func (f *Facts) hashKV(ctx context.Context, s *Session, rev int64) {
	h, err := pb.NewMaintenanceClient(s.Server.conn).HashKV(ctx, &pb.HashKVRequest{Revision: rev})
	if err != nil {
		f.add(fmt.Sprintf("hash at %d", rev), s.ownIDs(err.Error()))
		return
	}
	f.message(s, fmt.Sprintf("hash at %d", rev), h)
}

// WaitGone waits until key does not exist any more and compares that it lived
// at least min.
func WaitGone(key string, min time.Duration) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		start := time.Now()
		for time.Since(start) < recvTimeout {
			r, err := s.kv().Range(ctx, &pb.RangeRequest{Key: []byte(key)})
			if err != nil {
				f.status(s, err)
				return f
			}
			if r.Count == 0 {
				f.add("gone", true)
				f.add(fmt.Sprintf("lived at least %v", min), time.Since(start) >= min)
				f.message(s, "msg", r)
				return f
			}
			time.Sleep(20 * time.Millisecond)
		}
		f.add("!gone", false)
		return f
	}
}
