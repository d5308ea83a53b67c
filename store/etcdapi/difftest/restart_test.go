package difftest

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/status"
)

func TestRestart(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "clean", Steps: restartSteps(true)},
		{Name: "kill", Steps: restartSteps(false)},
		{Name: "empty store", Steps: []Step{{"restart", Restart(true)}, call("HDR-9 revision 1", All(0)), {"kill", Restart(false)}, call("HDR-9 revision still 1", All(0))}},
		{Name: "everything deleted and compacted", Steps: []Step{
			call("a", Put("a", "1")), call("a again", Put("a", "2")), call("delete", Delete("a")), call("compact", Compact(4)),
			{"kill", Restart(false)}, call("REV-6 revision", All(0)), call("REV-6 next put", Put("a", "3")), call("REV-2 generation", Get("a")),
			{"clean", Restart(true)}, call("REV-6 revision again", All(0)),
		}},
		{Name: "compaction just before the end", Steps: []Step{
			bulk(300, 500), call("CMP-7 compact in the background", &pb.CompactionRequest{Revision: 200}),
			{"kill", Restart(false)},
			call("CMP-7 below", &pb.RangeRequest{Key: []byte("s/0001"), Revision: 199}), call("CMP-7 at", &pb.RangeRequest{Key: []byte("s/0001"), Revision: 200}),
			call("CMP-7 again", Compact(200)), call("MNT-3 hash", &pb.HashKVRequest{}),
		}},
		{Name: "watch over a restart", Steps: []Step{
			call("a=1", Put("a", "1")), call("a=2", Put("a", "2")), {"kill", Restart(false)},
			{"open", Open("w")}, {"WCH-36 WCH-6 from before the restart on", Ask("w", 2, over("a", "b", 2))}, {"WCH-43 synced", Synced("w")},
		}},
		{Name: "end with an open watch", Steps: []Step{{"GRPC-14 V-18 SIGTERM", endWithWatch()}}},
	})
}

func restartSteps(clean bool) []Step {
	return []Step{
		call("grant 1", Grant(1, 30)), call("grant 2", Grant(2, 3000)),
		call("a", PutLease("a", "1", 1)), call("b", PutLease("b", "1", 2)), call("c", Put("c", "1")), call("c again", Put("c", "2")),
		call("txn", Do(Ops(Put("d", "1"), Put("e", "1"), Delete("c"))...)), call("compact", Compact(4)),
		alarm("ALM-7 raise", raise, Self, corrupt),
		{"time passes", Pause(4 * time.Second)},
		ttl("LSE-8 less left", 1),
		{"restart", Restart(clean)},
		call("REV-6 TOP-8 HDR-9 all", All(0)), call("CMP-7 below compacted", All(3)), call("CMP-7 at compacted", All(4)),
		ttl("LSE-13 full again", 1), ttl("LSE-15 other lease", 2), call("LSE-15 leases", &pb.LeaseLeasesRequest{}),
		alarm("ALM-7 still raised", getAlarm, 0, 0), call("ALM-7 put refused", Put("a", "2")),
		alarm("ALM-3 clear", clearIt, Self, corrupt),
		call("HDR-1 status", &pb.StatusRequest{}), call("CLU-1 HDR-12 members", &pb.MemberListRequest{}),
		call("REV-6 put", Put("c", "3")), call("REV-2 generation", Get("c")),
		call("LSE-4 revoke", &pb.LeaseRevokeRequest{ID: 1}), call("LSE-15 key is gone", Get("a")),
		{"restart again", Restart(!clean)},
		call("CMP-1 compact again", Compact(4)), ttl("LSE-8 revoked stays revoked", 1), call("all", All(0)), alarm("ALM-7 none", getAlarm, 0, 0),
	}
}

// endWithWatch ends the server with SIGTERM while a watch is open and compares
// the code the client sees.
func endWithWatch() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		w, err := s.open(ctx)
		if err == nil {
			err = w.stream.Send(from("a", 0))
		}
		if err != nil {
			f.status(s, err)
			return f
		}
		defer w.cancel()
		w.next(recvTimeout)
		if err := s.Server.terminate(); err != nil {
			f.add("!signal", err)
		}
		if m, ok := w.next(recvTimeout); ok {
			f.message(s, "unasked", m)
		}
		f.add("code", status.Code(w.err))
		return append(f, Restart(true)(ctx, s)...)
	}
}
