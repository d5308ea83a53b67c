package etcdapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// Large answers as JSON wait for their share of the budget, and give it back; small ones pass.
func TestGatewayWaitsForRoom(t *testing.T) {
	k := newKVTest(t, Config{ListBudget: 1 << 20})
	k.fill(400, 2000)
	budget := k.s.gateway.budget
	held, err := budget.acquire(k.ctx, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, limit int64) (keys int, err error) {
		body, err := gatewayOut.Marshal(&pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, Limit: limit})
		if err != nil {
			return 0, err
		}
		req, err := http.NewRequestWithContext(ctx, "POST", "http://"+k.target+"/v3/kv/range", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		var answer struct{ Kvs []json.RawMessage }
		err = json.NewDecoder(resp.Body).Decode(&answer)
		return len(answer.Kvs), err
	}
	ctx, cancel := context.WithCancel(k.ctx)
	gone := make(chan error)
	go func() {
		_, err := list(ctx, 0)
		gone <- err
	}()
	k.until("a list waits", func() bool { return budget.stats().Waiting == 1 })
	answered := make(chan int)
	go func() {
		keys, err := list(k.ctx, 0)
		if err != nil {
			t.Error(err)
		}
		answered <- keys
	}()
	k.until("another one waits", func() bool { return budget.stats().Waiting == 2 })
	if keys, err := list(k.ctx, 10); keys != 10 || err != nil {
		t.Errorf("a small list: %d keys, %v", keys, err)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("the client that left got an answer")
	}
	k.until("it waits no more", func() bool { return budget.stats().Waiting == 1 })
	budget.release(held)
	if keys := <-answered; keys != 400 {
		t.Errorf("%d keys", keys)
	}
	k.until("the budget is free again", func() bool { return budget.stats().InUse == 0 })
}

func TestAnswerSize(t *testing.T) {
	k := newKVTest(t, Config{})
	k.fill(100, 1000)
	all := &pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd}
	del := &pb.DeleteRangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, PrevKv: true}
	some := &pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, Limit: 10}
	count := &pb.RangeRequest{Key: underP.Key, RangeEnd: underP.RangeEnd, CountOnly: true}
	inner := &pb.TxnRequest{Failure: []*pb.RequestOp{thenDelete(del)}}
	nested := &pb.TxnRequest{Success: []*pb.RequestOp{thenRange(some), {Request: &pb.RequestOp_RequestTxn{RequestTxn: inner}}}}
	for _, c := range []struct {
		name     string
		req      proto.Message
		from, to int64
	}{
		{"all", all, 100_000, 110_000},
		{"ten", some, 10_000, 11_000},
		{"count", count, 0, 0},
		{"delete", del, 100_000, 110_000},
		{"delete without values", &pb.DeleteRangeRequest{Key: del.Key, RangeEnd: del.RangeEnd}, 0, 0},
		{"nested", nested, 110_000, 121_000},
		{"compacted", &pb.RangeRequest{Key: underP.Key, Revision: 1 << 40}, 0, 0},
		{"nothing", &pb.TxnRequest{Success: []*pb.RequestOp{{}}}, 0, 0},
	} {
		if n := k.s.answerSize(k.ctx, c.req); n < c.from || n > c.to {
			t.Errorf("%s: %d bytes, want %d to %d", c.name, n, c.from, c.to)
		}
	}
}
