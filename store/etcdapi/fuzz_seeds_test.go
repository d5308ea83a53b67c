package etcdapi

import (
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// scripter writes scripts for a fuzzClient.
type scripter struct {
	t      testing.TB
	script []byte
}

// call adds a call; several messages are for those that take more than one.
func (s *scripter) call(method string, messages ...proto.Message) {
	s.t.Helper()
	n := slices.Index(fuzzMethods, method)
	if n < 0 {
		s.t.Fatalf("there is no %s", method)
	}
	var body, text []byte
	for _, m := range messages {
		b, err := proto.Marshal(m)
		if err != nil {
			s.t.Fatal(err)
		}
		j, err := protojson.Marshal(m)
		if err != nil {
			s.t.Fatal(err)
		}
		if fuzzMethod(n).IsStreamingClient() {
			body = append(body, byte(len(b)))
		}
		body, text = append(body, b...), append(text, j...)
	}
	s.add(byte(n), body)
	s.add(byte(n)|asJSON, text)
}

func (s *scripter) add(method byte, body []byte) {
	s.script = append(append(s.script, method, byte(len(body)>>8), byte(len(body))), body...)
}

// fuzzRequestSeeds are scripts that use all methods and fields, and a few broken ones.
func fuzzRequestSeeds(t testing.TB) (seeds [][]byte) {
	for _, write := range []func(*scripter){
		seedRanges, seedWrites, seedTxn, seedWatch, seedLease, seedMaintenance, seedMembers, seedAuth, seedLocks, seedBroken,
	} {
		s := &scripter{t: t}
		write(s)
		seeds = append(seeds, s.script)
	}
	return seeds
}

func (s *scripter) puts(keys ...string) {
	for _, k := range keys {
		s.call("KV/Put", &pb.PutRequest{Key: []byte(k), Value: []byte("value of " + k)})
	}
}

func seedRanges(s *scripter) {
	s.puts("a", "b", "b", "c")
	all := &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}
	for _, change := range []func(*pb.RangeRequest){
		func(*pb.RangeRequest) {},
		func(r *pb.RangeRequest) { r.Limit, r.Serializable = 2, true },
		func(r *pb.RangeRequest) { r.KeysOnly, r.Revision = true, 4 },
		func(r *pb.RangeRequest) { r.CountOnly = true },
		func(r *pb.RangeRequest) { r.SortTarget, r.SortOrder = pb.RangeRequest_VALUE, pb.RangeRequest_DESCEND },
		func(r *pb.RangeRequest) { r.MinModRevision, r.MaxCreateRevision = 2, 5 },
		func(r *pb.RangeRequest) { r.Key, r.RangeEnd, r.Revision = []byte("b"), []byte("b"), -1 },
	} {
		r := proto.CloneOf(all)
		change(r)
		s.call("KV/Range", r)
		s.call("KV/RangeStream", r)
	}
}

func seedWrites(s *scripter) {
	s.puts("a", "b")
	s.call("KV/Put", &pb.PutRequest{Key: []byte("a"), IgnoreValue: true, PrevKv: true})
	s.call("KV/Put", &pb.PutRequest{Key: []byte("a"), Value: []byte("x"), IgnoreLease: true})
	s.call("KV/Put", &pb.PutRequest{Key: []byte("a"), Lease: 99})
	s.call("KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), PrevKv: true})
	s.call("KV/Compact", &pb.CompactionRequest{Revision: 3, Physical: true})
	s.call("KV/Range", &pb.RangeRequest{Key: []byte("a"), Revision: 2})
	s.call("KV/Compact", &pb.CompactionRequest{Revision: 1 << 62})
}

func seedTxn(s *scripter) {
	key := []byte("a")
	put := func(k string) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(k), PrevKv: true}}}
	}
	get := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key, RangeEnd: []byte("z")}}}
	del := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("c"), PrevKv: true}}}
	compare := []*pb.Compare{
		{Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: 0}},
		{Key: key, RangeEnd: []byte{0}, Target: pb.Compare_VALUE, Result: pb.Compare_NOT_EQUAL, TargetUnion: &pb.Compare_Value{Value: []byte("x")}},
		{Key: key, Target: pb.Compare_VERSION, Result: pb.Compare_LESS, TargetUnion: &pb.Compare_Version{Version: 3}},
		{Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_GREATER, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: -1}},
		{Key: key, Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{Lease: 0}},
	}
	s.puts("c")
	inner := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{
		Compare: compare[:1], Success: []*pb.RequestOp{put("d"), get}, Failure: []*pb.RequestOp{del}}}}
	for range 2 {
		s.call("KV/Txn", &pb.TxnRequest{Compare: compare[:1], Success: []*pb.RequestOp{get, put("a"), get, del, inner}, Failure: []*pb.RequestOp{get, inner}})
	}
	s.call("KV/Txn", &pb.TxnRequest{Compare: compare, Success: []*pb.RequestOp{{}}, Failure: []*pb.RequestOp{put("e"), put("e")}})
	s.call("KV/Txn", &pb.TxnRequest{})
}

func seedWatch(s *scripter) {
	create := func(r *pb.WatchCreateRequest) *pb.WatchRequest {
		return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}
	}
	s.puts("a", "b")
	s.call("Watch/Watch",
		create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c"), PrevKv: true, ProgressNotify: true}),
		create(&pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: 1, Fragment: true, WatchId: 7}),
		create(&pb.WatchCreateRequest{Key: []byte("b"), WatchId: 7, Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}}),
		create(&pb.WatchCreateRequest{Key: []byte("z"), RangeEnd: []byte("a"), StartRevision: -5}),
		create(&pb.WatchCreateRequest{Key: []byte("b"), StartRevision: 100, Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE, 5}}),
		&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}},
		&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: 1}}},
		&pb.WatchRequest{})
	s.puts("a", "b")
	s.call("KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte("z")})
	s.call("KV/Compact", &pb.CompactionRequest{Revision: 4})
	s.call("Watch/Watch", create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 2}))
}

func seedLease(s *scripter) {
	s.call("Lease/LeaseGrant", &pb.LeaseGrantRequest{ID: 5, TTL: 60})
	s.call("Lease/LeaseGrant", &pb.LeaseGrantRequest{TTL: -1})
	s.call("Lease/LeaseGrant", &pb.LeaseGrantRequest{ID: -1, TTL: 9_000_000_001})
	s.call("KV/Put", &pb.PutRequest{Key: []byte("leased"), Lease: 5})
	s.call("Lease/LeaseKeepAlive", &pb.LeaseKeepAliveRequest{ID: 5}, &pb.LeaseKeepAliveRequest{ID: 6})
	s.call("Lease/LeaseTimeToLive", &pb.LeaseTimeToLiveRequest{ID: 5, Keys: true})
	s.call("Lease/LeaseLeases", &pb.LeaseLeasesRequest{})
	s.call("Lease/LeaseRevoke", &pb.LeaseRevokeRequest{ID: 5})
}

func seedMaintenance(s *scripter) {
	s.puts("a")
	s.call("Maintenance/Alarm", &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 1})
	s.puts("b")
	s.call("Maintenance/Status", &pb.StatusRequest{})
	s.call("Maintenance/Alarm", &pb.AlarmRequest{})
	s.call("Maintenance/Alarm", &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 1})
	s.call("Maintenance/Alarm", &pb.AlarmRequest{Action: 9, Alarm: 9})
	s.call("Maintenance/Defragment", &pb.DefragmentRequest{})
	s.call("Maintenance/Hash", &pb.HashRequest{})
	s.call("Maintenance/HashKV", &pb.HashKVRequest{Revision: 2})
	s.call("Maintenance/Snapshot", &pb.SnapshotRequest{})
	s.call("Maintenance/MoveLeader", &pb.MoveLeaderRequest{TargetID: 3})
	s.call("Maintenance/Downgrade", &pb.DowngradeRequest{Action: pb.DowngradeRequest_VALIDATE, Version: "3.6.0"})
}

func seedMembers(s *scripter) {
	s.call("Cluster/MemberList", &pb.MemberListRequest{Linearizable: true})
	s.call("Cluster/MemberAdd", &pb.MemberAddRequest{PeerURLs: []string{"http://127.0.0.1:2380"}, IsLearner: true})
	s.call("Cluster/MemberUpdate", &pb.MemberUpdateRequest{ID: 1, PeerURLs: []string{"http://["}})
	s.call("Cluster/MemberRemove", &pb.MemberRemoveRequest{ID: 1})
	s.call("Cluster/MemberPromote", &pb.MemberPromoteRequest{ID: 1})
}

func seedAuth(s *scripter) {
	s.call("Auth/RoleAdd", &pb.AuthRoleAddRequest{Name: "r"})
	s.call("Auth/RoleGrantPermission", &pb.AuthRoleGrantPermissionRequest{Name: "r",
		Perm: &authpb.Permission{PermType: authpb.READWRITE, Key: []byte("a"), RangeEnd: []byte("b")}})
	s.call("Auth/RoleGet", &pb.AuthRoleGetRequest{Role: "r"})
	s.call("Auth/RoleList", &pb.AuthRoleListRequest{})
	s.call("Auth/UserAdd", &pb.AuthUserAddRequest{Name: "root", Options: &authpb.UserAddOptions{NoPassword: true}})
	s.call("Auth/UserGrantRole", &pb.AuthUserGrantRoleRequest{User: "root", Role: "r"})
	s.call("Auth/UserGet", &pb.AuthUserGetRequest{Name: "root"})
	s.call("Auth/UserList", &pb.AuthUserListRequest{})
	s.call("Auth/UserRevokeRole", &pb.AuthUserRevokeRoleRequest{Name: "root", Role: "r"})
	s.call("Auth/UserChangePassword", &pb.AuthUserChangePasswordRequest{Name: "root", HashedPassword: "x"})
	s.call("Auth/RoleRevokePermission", &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("a"), RangeEnd: []byte("b")})
	s.call("Auth/AuthStatus", &pb.AuthStatusRequest{})
	s.call("Auth/Authenticate", &pb.AuthenticateRequest{Name: "root", Password: "x"})
	s.call("Auth/AuthDisable", &pb.AuthDisableRequest{})
	s.call("Auth/UserDelete", &pb.AuthUserDeleteRequest{Name: "root"})
	s.call("Auth/RoleDelete", &pb.AuthRoleDeleteRequest{Role: "r"})
	s.call("Auth/AuthEnable", &pb.AuthEnableRequest{})
	s.call("Auth/UserAdd", &pb.AuthUserAddRequest{Name: "root", Password: "secret"})
	s.call("Auth/RoleAdd", &pb.AuthRoleAddRequest{Name: "root"})
	s.call("Auth/UserGrantRole", &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"})
	s.call("Auth/AuthEnable", &pb.AuthEnableRequest{})
	s.puts("a")
	s.call("Auth/Authenticate", &pb.AuthenticateRequest{Name: "root", Password: "secret"})
	s.puts("a")
	s.call("Auth/AuthDisable", &pb.AuthDisableRequest{})
}

func seedLocks(s *scripter) {
	s.call("Lease/LeaseGrant", &pb.LeaseGrantRequest{ID: 5, TTL: 60})
	s.call("Lease/LeaseGrant", &pb.LeaseGrantRequest{ID: 6, TTL: 60})
	for _, lease := range []int64{5, 6, 7} {
		s.call("Lock/Lock", &concurrencypb.LockRequest{Name: []byte("l"), Lease: lease})
		s.call("Election/Campaign", &concurrencypb.CampaignRequest{Name: []byte("e"), Lease: lease, Value: []byte("v")})
	}
	leader := &concurrencypb.LeaderKey{Name: []byte("e"), Key: []byte("e/5"), Rev: 3, Lease: 5}
	s.call("Election/Observe", &concurrencypb.LeaderRequest{Name: []byte("e")})
	s.call("Election/Leader", &concurrencypb.LeaderRequest{Name: []byte("e")})
	s.call("Election/Proclaim", &concurrencypb.ProclaimRequest{Leader: leader, Value: []byte("w")})
	s.call("Election/Resign", &concurrencypb.ResignRequest{Leader: leader})
	s.call("Lock/Unlock", &concurrencypb.UnlockRequest{Key: []byte("l/5")})
}

func seedBroken(s *scripter) {
	for n := range fuzzMethods {
		s.add(byte(n), []byte{3, 0xff, 0xff, 0xff})
		s.add(byte(n)|asJSON, []byte(`{"key":[`))
	}
}
