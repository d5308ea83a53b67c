package etcdapi

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// using returns how many requests use the lists that can be shared now.
func (l *sharedLists) using() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lists {
		n += one.users
	}
	return n
}

// sharing starts lists while the budget is taken, so that they meet.
type sharing struct {
	*kvTest
	held    int64
	answers chan *pb.RangeResponse
	started int
}

func newSharing(t *testing.T) *sharing {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	k.fill(400, 2000)
	held, err := k.s.budget.acquire(k.ctx, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return &sharing{kvTest: k, held: held, answers: make(chan *pb.RangeResponse, 10)}
}

// list starts a list and waits until it is one of those that share.
func (s *sharing) list(ctx context.Context, req *pb.RangeRequest, want codes.Code) {
	s.started++
	s.begin(ctx, req, want)
	s.until("the list waits", func() bool { return s.s.shared.using() == s.started })
}

// stream starts a stream, of which the fifth of six chunks is large enough to be shared.
func (s *sharing) stream(req *pb.RangeRequest) {
	s.started++
	go func() {
		chunks, err := s.kvTest.stream(req)
		if err != nil {
			s.T.Errorf("the stream ended with %v", err)
		}
		s.answers <- merge(chunks)
	}()
	s.until("the stream waits", func() bool { return s.s.shared.using() == s.started })
}

func (s *sharing) begin(ctx context.Context, req *pb.RangeRequest, want codes.Code) {
	go func() {
		resp, err := s.kv.Range(ctx, req)
		if got := status.Code(err); got != want {
			s.T.Errorf("the list ended with %v", err)
		}
		s.answers <- resp
	}()
}

// answer lets the lists go and returns the next answer.
func (s *sharing) answer() *pb.RangeResponse {
	s.T.Helper()
	if s.held > 0 {
		s.s.budget.release(s.held)
		s.held = 0
	}
	return <-s.answers
}

// Nothing is left of the lists that shared.
func (s *sharing) done(shared uint64) {
	s.T.Helper()
	s.until("the budget is free again", func() bool { return s.s.budget.stats().InUse == 0 })
	s.until("nothing is kept", func() bool { return s.s.shared.using() == 0 })
	if n := s.s.shared.count(); n != shared {
		s.T.Errorf("%d lists used the bytes of another one, want %d", n, shared)
	}
}

func TestListsShareTheirBytes(t *testing.T) {
	s := newSharing(t)
	for range 5 {
		s.list(s.ctx, &underP, codes.OK)
	}
	rev := s.put("elsewhere", "x") // does not matter
	s.list(s.ctx, &underP, codes.OK)
	headers := map[int64]int{}
	for range 6 {
		resp := s.answer()
		if len(resp.GetKvs()) != 400 || resp.Count != 400 || len(resp.Kvs[399].Value) != 2000 {
			t.Fatalf("%d keys, count %d", len(resp.GetKvs()), resp.GetCount())
		}
		headers[resp.Header.Revision]++
	}
	if headers[rev-1] != 5 || headers[rev] != 1 {
		t.Errorf("headers have the revisions %v", headers)
	}
	s.done(5)
}

func TestStreamsShareTheirChunks(t *testing.T) {
	s := newSharing(t)
	for range 4 {
		s.stream(&underP)
	}
	rev := s.put("elsewhere", "x") // does not matter
	s.stream(&underP)
	headers := map[int64]int{}
	for range 5 {
		resp := s.answer()
		if len(resp.Kvs) != 400 || resp.Count != 400 || len(resp.Kvs[399].Value) != 2000 {
			t.Fatalf("%d keys, count %d", len(resp.Kvs), resp.Count)
		}
		headers[resp.Header.Revision]++
	}
	if headers[rev-1] != 4 || headers[rev] != 1 {
		t.Errorf("headers have the revisions %v", headers)
	}
	s.done(4)
}

func TestListsOfDifferentStatesDoNotShare(t *testing.T) {
	s := newSharing(t)
	s.list(s.ctx, &underP, codes.OK)
	rev := s.put("p/00000", "changed")
	s.begin(s.ctx, &underP, codes.OK)
	s.until("both build", func() bool { return s.s.budget.stats().Waiting == 2 })
	values := map[int64]string{}
	for range 2 {
		resp := s.answer()
		values[resp.Header.Revision] = string(resp.Kvs[0].Value)
	}
	if len(values[rev-1]) != 2000 || values[rev] != "changed" {
		t.Errorf("values: %v", values)
	}
	s.done(0)
}

func TestListGoesOnWithoutItsFirstClient(t *testing.T) {
	s := newSharing(t)
	ctx, cancel := context.WithCancel(s.ctx)
	s.list(ctx, &underP, codes.Canceled)
	s.list(s.ctx, &underP, codes.OK)
	cancel()
	if resp := <-s.answers; resp != nil {
		t.Fatal("the canceled one got an answer")
	}
	s.started--
	s.until("the other one builds the list", func() bool { return s.s.budget.stats().Waiting == 1 })
	if resp := s.answer(); len(resp.GetKvs()) != 400 {
		t.Fatalf("%d keys", len(resp.GetKvs()))
	}
	s.done(1)
}
