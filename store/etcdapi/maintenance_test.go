package etcdapi

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/tarn-kv/tarn/store"
)

// adminTest is a client of a server with an empty store.
type adminTest struct {
	t   *testing.T
	ctx context.Context
	s   *Server
	pb.MaintenanceClient
	kv      pb.KVClient
	cluster pb.ClusterClient
	auth    pb.AuthClient
}

func newAdminTest(t *testing.T, cfg Config) *adminTest {
	t.Helper()
	s, addr := startServer(t, cfg)
	conn := dial(t, addr)
	return &adminTest{
		t: t, ctx: testContext(t), s: s, MaintenanceClient: pb.NewMaintenanceClient(conn),
		kv: pb.NewKVClient(conn), cluster: pb.NewClusterClient(conn), auth: pb.NewAuthClient(conn),
	}
}

func (a *adminTest) put(key, value string) {
	a.t.Helper()
	if _, err := a.kv.Put(a.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(value)}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *adminTest) txn(ops ...*pb.RequestOp) {
	a.t.Helper()
	if _, err := a.kv.Txn(a.ctx, &pb.TxnRequest{Success: ops}); err != nil {
		a.t.Fatal(err)
	}
}

// The instance of the lock file is told by Status, and by nothing else.
func TestStatusTellsTheInstance(t *testing.T) {
	a := newAdminTest(t, Config{})
	var header metadata.MD
	if _, err := a.Status(a.ctx, &pb.StatusRequest{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get(InstanceHeader); len(got) != 1 || got[0] == "" || got[0] != a.s.store.Instance() {
		t.Errorf("header %q, instance %q", got, a.s.store.Instance())
	}
	if _, err := a.Hash(a.ctx, &pb.HashRequest{}, grpc.Header(&header)); err != nil || len(header.Get(InstanceHeader)) > 0 {
		t.Errorf("Hash sends %v, %v", header, err)
	}
}

func txnPut(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

func txnDelete(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}}
}

func (a *adminTest) compact(rev int64) {
	a.t.Helper()
	if _, err := a.kv.Compact(a.ctx, &pb.CompactionRequest{Revision: rev, Physical: true}); err != nil {
		a.t.Fatal(err)
	}
}

func TestStatus(t *testing.T) {
	a := newAdminTest(t, Config{})
	t.Run("TOP-1 HDR-9 fresh", func(t *testing.T) {
		st, err := a.Status(a.ctx, &pb.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		h := st.Header
		if h.Revision != 1 || h.RaftTerm != 2 || h.ClusterId != a.s.clusterID || h.MemberId != a.s.memberID {
			t.Errorf("header %v", h)
		}
		if st.Version != "3.7.3" || st.StorageVersion != "3.7.0" || st.Leader != h.MemberId || st.RaftTerm != 2 || st.IsLearner || len(st.Errors) != 0 {
			t.Error(st)
		}
		if st.RaftIndex == 0 || st.RaftIndex != st.RaftAppliedIndex || st.DbSizeQuota != 2147483648 || st.DbSize <= 0 || st.DbSizeInUse <= 0 {
			t.Error(st)
		}
		if d := st.DowngradeInfo; d == nil || d.Enabled || d.TargetVersion != "" {
			t.Errorf("downgrade info %v", d)
		}
	})
	t.Run("index does not decrease", func(t *testing.T) {
		before, _ := a.Status(a.ctx, &pb.StatusRequest{})
		a.put("a", "1")
		after, err := a.Status(a.ctx, &pb.StatusRequest{})
		if err != nil || after.RaftIndex <= before.RaftIndex || after.Header.Revision != 2 {
			t.Errorf("before %v, after %v, %v", before, after, err)
		}
	})
}

func TestAlarms(t *testing.T) {
	a := newAdminTest(t, Config{})
	const foreign = 4711
	call := func(t *testing.T, action pb.AlarmRequest_AlarmAction, member uint64, typ pb.AlarmType, want ...pb.AlarmType) {
		t.Helper()
		resp, err := a.Alarm(a.ctx, &pb.AlarmRequest{Action: action, MemberID: member, Alarm: typ})
		if err != nil {
			t.Fatal(err)
		}
		var got []pb.AlarmType
		for _, m := range resp.Alarms {
			got = append(got, m.Alarm)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || resp.Header.MemberId != a.s.memberID {
			t.Errorf("%v of %v: got %v", action, typ, resp)
		}
	}
	const get, on, off = pb.AlarmRequest_GET, pb.AlarmRequest_ACTIVATE, pb.AlarmRequest_DEACTIVATE
	const none, noSpace, corrupt = pb.AlarmType_NONE, pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT
	id := a.s.memberID
	t.Run("ALM-1", func(t *testing.T) {
		call(t, get, 0, none)
		call(t, on, id, noSpace, noSpace)
		call(t, get, 0, none, noSpace)
		call(t, get, foreign, noSpace, noSpace)
		call(t, get, 0, corrupt)
	})
	t.Run("ALM-2", func(t *testing.T) {
		call(t, on, id, noSpace, noSpace)
		call(t, on, id, none)
		call(t, on, foreign, corrupt, corrupt)
		call(t, get, 0, none, noSpace, corrupt)
	})
	t.Run("status", func(t *testing.T) {
		st, err := a.Status(a.ctx, &pb.StatusRequest{})
		if err != nil || len(st.Errors) != 2 {
			t.Errorf("%v, %v", st, err)
		}
	})
	t.Run("CORRUPT table", func(t *testing.T) {
		_, err := a.kv.Put(a.ctx, &pb.PutRequest{Key: []byte("a")})
		wantStatus(t, err, codes.DataLoss, "etcdserver: corrupt cluster")
		_, err = a.kv.DeleteRange(a.ctx, &pb.DeleteRangeRequest{Key: []byte("a")})
		wantStatus(t, err, codes.DataLoss, "etcdserver: corrupt cluster")
		if _, err := a.kv.Range(a.ctx, &pb.RangeRequest{Key: []byte("a")}); err != nil {
			t.Error(err)
		}
	})
	t.Run("ALM-3", func(t *testing.T) {
		call(t, off, id, corrupt)
		call(t, off, 0, noSpace)
		call(t, off, foreign, corrupt, corrupt)
		call(t, off, foreign, corrupt)
	})
	t.Run("NOSPACE table", func(t *testing.T) {
		_, err := a.kv.Put(a.ctx, &pb.PutRequest{Key: []byte("a")})
		wantStatus(t, err, codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded")
		_, err = a.kv.Txn(a.ctx, &pb.TxnRequest{Failure: []*pb.RequestOp{txnPut("a", "1")}})
		wantStatus(t, err, codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded")
		a.txn(txnDelete("a"))
		if _, err := a.kv.DeleteRange(a.ctx, &pb.DeleteRangeRequest{Key: []byte("a")}); err != nil {
			t.Error(err)
		}
		if _, err := a.Defragment(a.ctx, &pb.DefragmentRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("ALM-3 then writes", func(t *testing.T) {
		call(t, off, id, noSpace, noSpace)
		a.put("a", "1")
	})
	t.Run("ALM-4 V-1", func(t *testing.T) {
		_, err := a.Alarm(a.ctx, &pb.AlarmRequest{Action: 7})
		wantStatus(t, err, codes.InvalidArgument, "etcdserver: unknown alarm action")
		_, err = a.Alarm(a.ctx, &pb.AlarmRequest{Action: on, Alarm: 9})
		wantStatus(t, err, codes.InvalidArgument, "etcdserver: unknown alarm type")
	})
}

func TestHashes(t *testing.T) {
	a := newAdminTest(t, Config{})
	check := func(t *testing.T, rev int64, hash uint32, compact int64) {
		t.Helper()
		resp, err := a.HashKV(a.ctx, &pb.HashKVRequest{Revision: rev})
		if err != nil {
			t.Fatal(err)
		}
		current := resp.Header.Revision
		want := rev
		if rev <= 0 {
			want = current
		}
		if resp.Hash != hash || resp.CompactRevision != compact || resp.HashRevision != want || current != a.s.store.Revision() {
			t.Errorf("HashKV(%d): hash %08x, want %08x; %v", rev, resp.Hash, hash, resp)
		}
	}
	// The values are etcd's for the same writes.
	t.Run("MNT-3 empty", func(t *testing.T) { check(t, 0, 0x40a4756d, -1) })
	a.put("a", "1")
	a.put("a", "2")
	a.put("b", "1")
	a.txn(txnDelete("b"))
	a.put("c", "1")
	a.txn(txnPut("d", "1"), txnPut("e", "2"), txnDelete("c"))
	a.put("a", "3")
	a.put("f", "9")
	t.Run("MNT-3 before compaction", func(t *testing.T) {
		check(t, 0, 0x93041280, -1)
		check(t, 5, 0x0f081052, -1)
	})
	t.Run("MNT-5 V-8", func(t *testing.T) { check(t, -3, 0x93041280, -1) })
	a.compact(5)
	t.Run("MNT-3 MNT-4 after compaction", func(t *testing.T) {
		check(t, 0, 0xa92d9fe6, 5)
		check(t, 5, 0x0f081052, -1)
		check(t, 6, 0x60cac3f9, 5)
		_, err := a.HashKV(a.ctx, &pb.HashKVRequest{Revision: 4})
		wantStatus(t, err, codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted")
		_, err = a.HashKV(a.ctx, &pb.HashKVRequest{Revision: 10})
		wantStatus(t, err, codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision")
	})
	t.Run("MNT-2", func(t *testing.T) {
		first, err := a.Hash(a.ctx, &pb.HashRequest{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := a.Hash(a.ctx, &pb.HashRequest{})
		if err != nil || first.Hash != second.Hash || first.Header.Revision != 9 {
			t.Errorf("%v then %v, %v", first, second, err)
		}
	})
}

func TestDefragment(t *testing.T) {
	log := new(logBuffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
	st, err := store.Open(store.Options{Dir: t.TempDir(), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	a := newAdminTest(t, Config{Store: st, Logger: logger})
	a.put("a", "1")
	t.Run("MNT-1 HDR-5", func(t *testing.T) {
		resp, err := a.Defragment(a.ctx, &pb.DefragmentRequest{})
		if err != nil || resp.Header != nil {
			t.Fatalf("%v, %v", resp, err)
		}
		got, err := a.kv.Range(a.ctx, &pb.RangeRequest{Key: []byte("a")})
		if err != nil || got.Count != 1 || got.Header.Revision != 2 {
			t.Errorf("%v, %v", got, err)
		}
		if n := strings.Count(log.String(), "defragmented"); n != 1 {
			t.Errorf("the log tells it %d times:\n%s", n, log)
		}
	})
}

func TestMoveLeader(t *testing.T) {
	a := newAdminTest(t, Config{})
	t.Run("MNT-10", func(t *testing.T) {
		resp, err := a.MoveLeader(a.ctx, &pb.MoveLeaderRequest{TargetID: a.s.memberID})
		if err != nil || resp.Header != nil {
			t.Errorf("%v, %v", resp, err)
		}
	})
	t.Run("MNT-11", func(t *testing.T) {
		for _, id := range []uint64{0, 4711} {
			_, err := a.MoveLeader(a.ctx, &pb.MoveLeaderRequest{TargetID: id})
			wantStatus(t, err, codes.FailedPrecondition, "etcdserver: bad leader transferee")
		}
	})
}

func TestDowngrade(t *testing.T) {
	a := newAdminTest(t, Config{})
	const (
		format  = "etcdserver: wrong downgrade target version format"
		invalid = "etcdserver: invalid downgrade target version"
	)
	for _, c := range []struct {
		id      string
		action  pb.DowngradeRequest_DowngradeAction
		version string
		code    codes.Code
		text    string
	}{
		{"MNT-12", pb.DowngradeRequest_VALIDATE, "3.6", codes.OK, ""},
		{"MNT-12", pb.DowngradeRequest_VALIDATE, "3.6.0", codes.OK, ""},
		{"MNT-13", pb.DowngradeRequest_VALIDATE, "3.5.0", codes.InvalidArgument, invalid},
		{"MNT-13", pb.DowngradeRequest_VALIDATE, "3.7.0", codes.InvalidArgument, invalid},
		{"MNT-13", pb.DowngradeRequest_VALIDATE, "4.6.0", codes.InvalidArgument, invalid},
		{"MNT-13", pb.DowngradeRequest_VALIDATE, "", codes.InvalidArgument, format},
		{"MNT-13", pb.DowngradeRequest_VALIDATE, "three", codes.InvalidArgument, format},
		{"MNT-13", pb.DowngradeRequest_VALIDATE, "3.x.0", codes.InvalidArgument, format},
		{"MNT-14", pb.DowngradeRequest_CANCEL, "", codes.OK, ""},
		{"MNT-15", pb.DowngradeRequest_ENABLE, "3.6.0", codes.InvalidArgument, invalid},
		{"unknown action", 9, "3.6.0", codes.Unknown, "etcdserver: unknown method"},
	} {
		t.Run(c.id+" "+c.version, func(t *testing.T) {
			resp, err := a.Downgrade(a.ctx, &pb.DowngradeRequest{Action: c.action, Version: c.version})
			wantStatus(t, err, c.code, c.text)
			if err == nil && (resp.Version != "3.7" || resp.Header.Revision != 1) {
				t.Error(resp)
			}
		})
	}
}
