package difftest

import (
	"context"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

const (
	getAlarm = pb.AlarmRequest_GET
	raise    = pb.AlarmRequest_ACTIVATE
	clearIt  = pb.AlarmRequest_DEACTIVATE
	noSpace  = pb.AlarmType_NOSPACE
	corrupt  = pb.AlarmType_CORRUPT
)

func alarm(name string, a pb.AlarmRequest_AlarmAction, member uint64, kind pb.AlarmType) Step {
	return call(name, &pb.AlarmRequest{Action: a, MemberID: member, Alarm: kind})
}

func TestAlarm(t *testing.T) {
	smallQuota := []string{"--quota-backend-bytes=8388608"}
	suite.Run(t, []Case{
		{Name: "actions", Steps: []Step{
			alarm("ALM-1 none", getAlarm, 0, 0),
			alarm("ALM-2 type none", raise, Self, 0),
			alarm("ALM-3 not active", clearIt, Self, corrupt),
			alarm("ALM-2 corrupt", raise, Self, corrupt),
			alarm("ALM-2 again", raise, Self, corrupt),
			alarm("ALM-1 all", getAlarm, 0, 0),
			alarm("ALM-1 other type", getAlarm, 0, noSpace),
			alarm("ALM-1 member ignored", getAlarm, 42, corrupt),
			call("status errors", &pb.StatusRequest{}),
			alarm("ALM-3 member 0", clearIt, 0, corrupt),
			alarm("ALM-3 other type", clearIt, Self, noSpace),
			call("still corrupt", Put("a", "1")),
			alarm("ALM-3 deactivate", clearIt, Self, corrupt),
			alarm("ALM-1 none left", getAlarm, 0, 0),
			call("REV-4 put", Put("a", "1")),
			alarm("ALM-2 foreign id", raise, 42, corrupt),
			call("ALM-2 takes effect", Put("a", "2")),
			alarm("ALM-3 foreign id off", clearIt, 42, corrupt),
			call("put again", Put("a", "3")),
		}},
		{Name: "under corrupt", Steps: append(append([]Step{call("grant 1", Grant(1, 1000)), call("grant 2", Grant(2, 1000)), call("a", PutLease("a", "1", 1)), call("b", Put("b", "1")),
			alarm("raise", raise, Self, corrupt)}, underAlarm()...),
			alarm("clear", clearIt, Self, corrupt), call("put after", Put("after", "1")))},
		{Name: "under nospace", Flags: smallQuota, Steps: append(append([]Step{call("grant 1", Grant(1, 1000)), call("grant 2", Grant(2, 1000)), call("a", PutLease("a", "1", 1)), call("b", Put("b", "1")),
			{"ALM-5 fill", fill(100_000)}}, underAlarm()...),
			call("LSE-3 grant", Grant(9, 100)))},
		{Name: "freeing space", Flags: smallQuota, Steps: []Step{
			call("a", Put("a", "1")),
			{"ALM-5 fill", fill(100_000)},
			alarm("ALM-5 raised", getAlarm, 0, 0),
			call("status errors", &pb.StatusRequest{}),
			call("put refused", Put("a", "2")),
			call("ALM-5 delete", DeleteAll("fill", "film")),
			{"ALM-5 compact", compactNow()},
			call("ALM-8 defragment", &pb.DefragmentRequest{}),
			alarm("ALM-8 alarm after freeing space", getAlarm, 0, 0),
			alarm("ALM-3 disarm", clearIt, Self, noSpace),
			alarm("ALM-3 none left", getAlarm, 0, 0),
			call("put works", Put("b", "4")),
		}},
		{Name: "write after freeing space", Flags: smallQuota, Diverge: true, Steps: []Step{
			{"ALM-5 fill", fill(100_000)},
			call("ALM-5 delete", DeleteAll("fill", "film")),
			{"ALM-5 compact", compactNow()},
			call("ALM-8 defragment", &pb.DefragmentRequest{}),
			call("ALM-8 put", Put("a", "3")),
		}},
		{Name: "unknown action", Steps: []Step{
			{"ALM-4 V-1 unknown action", Expect(Facts{{"code", codes.InvalidArgument.String()}}, codeOnly(Call(&pb.AlarmRequest{Action: 7})))},
			call("ALM-4 alive", Get("a")),
		}},
	})
}

// underAlarm is every row of the table of what works under an alarm. Keys a
// (lease 1) and b, leases 1 and 2 exist.
func underAlarm() []Step {
	return []Step{
		call("put", Put("a", "2")),
		// Of a size that the quota refuses: etcd checks that first, then the key, then the alarm.
		call("PUT-1 large put without key", &pb.PutRequest{Value: []byte(strings.Repeat("v", 200_000))}),
		call("PUT-1 put with an unknown lease", PutLease("a", "2", 99)),
		call("put with ignore_value", &pb.PutRequest{Key: []byte("a"), IgnoreValue: true}),
		call("txn with a put", Do(Ops(Put("a", "2"))...)),
		call("txn with a put in the branch not taken", Txn(nil, nil, Ops(Put("a", "2")))),
		call("txn with a put in a nested branch not taken", Do(Ops(Txn(nil, nil, Ops(Put("a", "2"))))...)),
		call("txn with delete only", Do(Ops(Delete("nope"))...)),
		call("TXN-12 txn with ranges only", Do(Ops(Get("a"), Get("b"))...)),
		call("txn empty", &pb.TxnRequest{}),
		call("txn nested ranges", Do(Ops(Do(Ops(Get("a"))...))...)),
		call("grant", Grant(5, 100)),
		{"keepalive", KeepAlive(1)},
		ttl("time to live", 1),
		call("leases", &pb.LeaseLeasesRequest{}),
		call("range", Get("a")),
		{"range stream", Stream(Get("a"))},
		call("status", &pb.StatusRequest{}),
		{"open", Open("w")},
		{"watch", Ask("w", 1, from("a", 0))},
		{"progress", Ask("w", 1, Progress())},
		call("delete", Delete("b")),
		call("revoke", &pb.LeaseRevokeRequest{ID: 2}),
		call("compact", Compact(2)),
		call("defragment", &pb.DefragmentRequest{}),
		call("alarm get", &pb.AlarmRequest{}),
		{"snapshot", snapshotFormat()},
		call("hash", &pb.HashRequest{}),
		{"HTTP-2 health", HTTP("GET", "/health", "")},
		{"HTTP-2 health exclude NOSPACE", HTTP("GET", "/health?exclude=NOSPACE", "")},
		{"HTTP-2 health exclude CORRUPT", HTTP("GET", "/health?exclude=CORRUPT", "")},
		{"HTTP-2 health serializable", HTTP("GET", "/health?serializable=true&exclude=NOSPACE", "")},
		{"HTTP-3 livez", HTTP("GET", "/livez", "")},
		{"HTTP-4 readyz", HTTP("GET", "/readyz", "")},
		{"HTTP-4 readyz exclude", HTTP("GET", "/readyz?exclude=data_corruption", "")},
		call("GRPC-16 health", healthCheck("")),
	}
}

func codeOnly(op Op) Op {
	return func(ctx context.Context, s *Session) Facts {
		for _, x := range op(ctx, s) {
			if x.Path == "code" {
				return Facts{x}
			}
		}
		return nil
	}
}

// fill writes keys of the given size until a write is refused and compares the
// refusal. How many fit is each server's own, so from here on revisions above
// the present one are compared relative to the last of these writes.
func fill(size int) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		before, err := s.current(ctx)
		if err != nil {
			f.status(s, err)
			return f
		}
		r := Put("fill", strings.Repeat("f", size))
		for n := 0; err == nil && n < 5000; n++ {
			_, err = s.kv().Put(ctx, r)
		}
		f.status(s, err)
		now, err := s.current(ctx)
		if err != nil {
			f.status(s, err)
		}
		s.filledFrom, s.shift = before, now-1_000_000
		return f
	}
}

// compactNow compacts to the current revision.
func compactNow() Op {
	return func(ctx context.Context, s *Session) Facts {
		rev, err := s.current(ctx)
		if err != nil {
			var f Facts
			f.status(s, err)
			return f
		}
		return Call(Compact(rev))(ctx, s)
	}
}
