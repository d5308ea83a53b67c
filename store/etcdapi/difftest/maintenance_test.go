package difftest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestMaintenance(t *testing.T) {
	downgrade := func(name string, a pb.DowngradeRequest_DowngradeAction, v string) Step {
		return call(name, &pb.DowngradeRequest{Action: a, Version: v})
	}
	const validate, cancel = pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_CANCEL
	suite.Run(t, []Case{
		{Name: "status", Steps: []Step{
			call("TOP-1 status of an empty store", &pb.StatusRequest{}),
			call("put", Put("a", "1")),
			call("HDR-1 status", &pb.StatusRequest{}),
		}},
		{Name: "status with a quota", Flags: []string{"--quota-backend-bytes=33554432"}, Steps: []Step{
			call("ALM-6 status", &pb.StatusRequest{}),
		}},
		{Name: "defragment and hash", Steps: []Step{
			call("a", Put("a", "1")), call("b", Put("b", "1")), call("delete a", Delete("a")),
			call("MNT-1 HDR-5 defragment", &pb.DefragmentRequest{}),
			call("MNT-1 data after", All(0)),
			call("MNT-2 hash", &pb.HashRequest{}),
			call("MNT-3 hash kv", &pb.HashKVRequest{}),
			call("MNT-3 future", &pb.HashKVRequest{Revision: 5}),
			call("MNT-3 past", &pb.HashKVRequest{Revision: 3}),
			call("MNT-3 revision 1", &pb.HashKVRequest{Revision: 1}),
			call("compact", Compact(3)),
			call("MNT-3 compacted", &pb.HashKVRequest{Revision: 2}),
			call("MNT-4 at compacted", &pb.HashKVRequest{Revision: 3}),
			call("MNT-5 V-8 negative", &pb.HashKVRequest{Revision: -2}),
		}},
		{Name: "stored hashes", Steps: storedHashes()},
		{Name: "snapshot", Steps: []Step{
			bulk(40, 5000),
			{"SNP-1 SNP-2 SNP-3 SNP-4 HDR-5 format", snapshotFormat()},
		}},
		{Name: "leader and downgrade", Steps: []Step{
			call("MNT-10 HDR-5 move to self", &pb.MoveLeaderRequest{TargetID: Self}),
			call("MNT-11 move to 0", &pb.MoveLeaderRequest{}),
			call("MNT-11 move to unknown", &pb.MoveLeaderRequest{TargetID: 42}),
			downgrade("MNT-12 validate 3.6", validate, "3.6"),
			downgrade("MNT-12 validate 3.6.0", validate, "3.6.0"),
			downgrade("MNT-13 validate 3.5", validate, "3.5"),
			downgrade("MNT-13 validate 3.7", validate, "3.7"),
			downgrade("MNT-13 validate 3.8", validate, "3.8.0"),
			downgrade("MNT-13 validate nonsense", validate, "nonsense"),
			downgrade("MNT-13 validate nothing", validate, ""),
			downgrade("MNT-14 cancel", cancel, ""),
			downgrade("MNT-14 unknown action", 9, "3.6"),
			downgrade("MNT-15 enable 3.5", pb.DowngradeRequest_ENABLE, "3.5"),
			downgrade("MNT-15 enable nonsense", pb.DowngradeRequest_ENABLE, "x"),
		}},
		{Name: "downgrade enable", Steps: []Step{downgrade("MNT-15 enable 3.6", pb.DowngradeRequest_ENABLE, "3.6")}},
	})
}

// storedHashes compacts more often than hashes are kept (10) and asks for all.
func storedHashes() []Step {
	var steps []Step
	for i := range int64(14) {
		steps = append(steps, call(fmt.Sprintf("put %d", i), Put(fmt.Sprintf("k%d", i%3), fmt.Sprint(i))))
	}
	for i := range int64(12) {
		steps = append(steps, call(fmt.Sprintf("compact %d", i+2), Compact(i+2)),
			call(fmt.Sprintf("MNT-4 hash at %d", i+2), &pb.HashKVRequest{Revision: i + 2}))
	}
	for i := range int64(14) {
		steps = append(steps, call(fmt.Sprintf("MNT-4 hash at %d in the end", i+2), &pb.HashKVRequest{Revision: i + 2}))
	}
	return steps
}

// snapshotFormat compares the rules for the messages of a snapshot; size and
// bytes of the file are each server's own.
func snapshotFormat() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		st, err := pb.NewMaintenanceClient(s.Server.conn).Snapshot(ctx, &pb.SnapshotRequest{})
		var msgs []*pb.SnapshotResponse
		for err == nil {
			var m *pb.SnapshotResponse
			if m, err = st.Recv(); err == nil {
				msgs = append(msgs, m)
			}
		}
		if !errors.Is(err, io.EOF) || len(msgs) < 3 {
			f.status(s, err)
			f.add("messages", len(msgs))
			return f
		}
		file, trailer := msgs[:len(msgs)-1], msgs[len(msgs)-1]
		var all []byte
		for _, m := range file {
			all = append(all, m.Blob...)
		}
		sum := sha256.Sum256(all)
		left, sizes, remaining, headers := len(all), true, true, false
		for i, m := range file {
			left -= len(m.Blob)
			sizes = sizes && (len(m.Blob) == 32768 || i == len(file)-1)
			remaining = remaining && m.RemainingBytes == uint64(left)
			headers = headers || m.Header != nil
			f.add("version", m.Version)
		}
		f.add("blobs of 32,768 bytes", sizes)
		f.add("remaining_bytes counts down", remaining)
		f.add("a header", headers)
		f.add("length mod 512", len(all)%512)
		f.add("trailer is the sum", string(trailer.Blob) == string(sum[:]))
		trailer.Blob = nil
		f.message(s, "trailer", trailer)
		return f
	}
}
