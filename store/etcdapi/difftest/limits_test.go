package difftest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

func TestLimits(t *testing.T) {
	sized := func(n int) string { return strings.Repeat("v", n) }
	key := func(n int) string { return strings.Repeat("k", n) }
	suite.Run(t, []Case{
		{Name: "request size", Steps: []Step{
			call("GRPC-2 largest value", Put("key", sized(1_572_834))),
			call("GRPC-2 too large", Put("key", sized(1_572_844))),
			call("GRPC-2 txn", Do(Ops(Put("a", sized(800_000)), Put("b", sized(800_000)))...)),
			call("GRPC-2 txn in the branch not taken", Txn(nil, nil, Ops(Put("a", sized(800_000)), Put("b", sized(800_000))))),
			call("GRPC-3 delete", Delete(key(1_600_000))),
			call("GRPC-3 txn with delete", Do(Ops(Delete(key(1_600_000)))...)),
			call("GRPC-3 nested txn with range", Do(Ops(Do(Ops(Get(key(1_600_000)))...))...)),
			call("GRPC-3 TXN-12 txn with range", Do(Ops(Get(key(1_600_000)))...)),
			call("GRPC-3 range", Get(key(1_800_000))),
			{"GRPC-3 stream", Stream(Get(key(1_800_000)))},
			{"open", Open("w")}, {"GRPC-3 watch", Ask("w", 1, from(key(1_800_000), 0))},
			call("PUT-1 size after lease check", PutLease("key", sized(1_600_000), 99)),
			call("PUT-1 size after ignore_value", &pb.PutRequest{Key: []byte("key"), Value: []byte(sized(1_600_000)), IgnoreValue: true}),
		}},
		{Name: "message size", Steps: []Step{
			call("GRPC-1 put", Put("key", sized(2_100_000))), call("GRPC-1 range", Get(key(2_100_000))),
			call("GRPC-1 exactly at it", Get(key(2_097_147))), call("GRPC-1 one more", Get(key(2_097_149))),
			{"GRPC-1 stream", Stream(Get(key(2_100_000)))},
			call("alive", Get("key")),
		}},
		{Name: "smaller request size", Flags: []string{"--max-request-bytes=20000"}, Steps: []Step{
			call("GRPC-2 below", Put("key", sized(19_900))), call("GRPC-2 above", Put("key", sized(20_001))), call("GRPC-1 message", Put("key", sized(600_000))),
		}},
		{Name: "smaller txn", Flags: []string{"--max-txn-ops=3"}, Steps: []Step{
			call("TXN-1 three", Do(puts("a", 3)...)), call("TXN-1 four", Do(puts("a", 4)...)),
		}},
		{Name: "large answer", Steps: []Step{bulk(60, 100_000), call("GRPC-4 above 4 MiB", List("s/", "s0"))}},
		{Name: "keepalive", Steps: []Step{{"TOP-10 GRPC-6 pings each 10 s", pings(45 * time.Second)}}},
	})
}

// pings keeps one connection with pings each 10 s and an open watch for d and
// compares that the watch still works. A server with grpc's default policy
// closes the connection after about 41 s.
func pings(d time.Duration) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		conn, err := grpc.NewClient("passthrough:///"+s.Server.Client, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
		if err != nil {
			f.status(s, err)
			return f
		}
		defer conn.Close()
		st, err := pb.NewWatchClient(conn).Watch(ctx)
		if err == nil {
			err = st.Send(from("k", 0))
		}
		if err == nil {
			_, err = st.Recv()
		}
		if err == nil {
			time.Sleep(d)
			_, err = s.kv().Put(ctx, Put("k", "1"))
		}
		if err == nil {
			var m *pb.WatchResponse
			m, err = st.Recv()
			f.add("events", fmt.Sprint(len(m.GetEvents())))
		}
		f.status(s, err)
		return f
	}
}
