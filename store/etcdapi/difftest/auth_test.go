package difftest

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func userAdd(name, password string) *pb.AuthUserAddRequest {
	return &pb.AuthUserAddRequest{Name: name, Password: password, Options: &authpb.UserAddOptions{}}
}

func permit(role string, kind authpb.Permission_Type, key, end string) *pb.AuthRoleGrantPermissionRequest {
	return &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: &authpb.Permission{PermType: kind, Key: []byte(key), RangeEnd: []byte(end)}}
}

func userGrant(user, role string) *pb.AuthUserGrantRoleRequest {
	return &pb.AuthUserGrantRoleRequest{User: user, Role: role}
}

var authStatus = &pb.AuthStatusRequest{}

func TestAuth(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "disabled", Steps: authDisabled()},
		{Name: "management", Steps: authManagement()},
		{Name: "enabled", Steps: authEnabled()},
		{Name: "jwt", Flags: jwtFlags(t), Steps: authJWT()},
		{Name: "exported", Steps: authExported()},
	})
}

func authDisabled() []Step {
	return []Step{
		call("AUT-2 status", authStatus),
		call("AUT-3 authenticate", &pb.AuthenticateRequest{Name: "root", Password: "x"}),
		call("AUT-4 disable", &pb.AuthDisableRequest{}),
		call("AUT-6 users", &pb.AuthUserListRequest{}), call("AUT-6 roles", &pb.AuthRoleListRequest{}),
		call("AUT-5 enable without root", &pb.AuthEnableRequest{}),
		call("AUT-1 token ignored", Get("a"), With("token", "x")),
		call("AUT-4 disable again", &pb.AuthDisableRequest{}),
		call("AUT-2 status unchanged", authStatus),
	}
}

func authManagement() []Step {
	const read, write, both = authpb.Permission_READ, authpb.Permission_WRITE, authpb.Permission_READWRITE
	return []Step{
		call("user without name", userAdd("", "x")), call("user add", userAdd("u", "x")), call("user again", userAdd("u", "y")),
		call("user with no password", &pb.AuthUserAddRequest{Name: "n", Options: &authpb.UserAddOptions{NoPassword: true}}),
		call("user with empty password", userAdd("e", "")),
		call("user get", &pb.AuthUserGetRequest{Name: "u"}), call("user get unknown", &pb.AuthUserGetRequest{Name: "zz"}),
		call("user get without name", &pb.AuthUserGetRequest{}),
		call("user list", &pb.AuthUserListRequest{}),
		call("change password", &pb.AuthUserChangePasswordRequest{Name: "u", Password: "z"}),
		call("change password unknown", &pb.AuthUserChangePasswordRequest{Name: "zz", Password: "z"}),
		call("status after users", authStatus),
		call("role without name", &pb.AuthRoleAddRequest{}), call("role add", &pb.AuthRoleAddRequest{Name: "r"}),
		call("role again", &pb.AuthRoleAddRequest{Name: "r"}), call("role add q", &pb.AuthRoleAddRequest{Name: "q"}),
		call("role list", &pb.AuthRoleListRequest{}),
		call("role get", &pb.AuthRoleGetRequest{Role: "r"}), call("role get unknown", &pb.AuthRoleGetRequest{Role: "zz"}),
		call("role get root", &pb.AuthRoleGetRequest{Role: "root"}),
		call("permission not given", &pb.AuthRoleGrantPermissionRequest{Name: "r"}),
		call("permission empty key", permit("r", read, "", "")), call("permission end below key", permit("r", read, "b", "a")),
		call("permission unknown role", permit("zz", read, "a", "")),
		call("permission key", permit("r", read, "k", "")), call("permission range", permit("r", both, "a", "c")),
		call("permission from on", permit("r", write, "x", "\x00")), call("permission again other kind", permit("r", write, "k", "")),
		call("permission same again", permit("r", write, "k", "")), call("permission all", permit("q", both, "\x00", "\x00")),
		call("permission end equals key", permit("r", read, "m", "m")),
		call("permission of no kind", permit("q", 7, "odd", "")), call("role get with a permission of no kind", &pb.AuthRoleGetRequest{Role: "q"}),
		call("role two", &pb.AuthRoleAddRequest{Name: "two"}), call("permission two", permit("two", read, "k", "")),
		call("permission two more", permit("two", read, "k", "z")), call("permission two first", permit("two", write, "k", "")),
		call("role get two", &pb.AuthRoleGetRequest{Role: "two"}), call("permission two second", permit("two", write, "k", "z")),
		call("V-24 role get two changed", &pb.AuthRoleGetRequest{Role: "two"}),
		call("role get with permissions", &pb.AuthRoleGetRequest{Role: "r"}),
		call("revoke permission", &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("k")}),
		call("revoke permission again", &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("k")}),
		call("revoke permission wrong end", &pb.AuthRoleRevokePermissionRequest{Role: "r", Key: []byte("a"), RangeEnd: []byte("b")}),
		call("revoke permission unknown role", &pb.AuthRoleRevokePermissionRequest{Role: "zz", Key: []byte("k")}),
		call("role get after revoke", &pb.AuthRoleGetRequest{Role: "r"}),
		call("grant role", userGrant("u", "r")), call("grant role again", userGrant("u", "r")), call("grant second role", userGrant("u", "q")),
		call("grant role root without RoleAdd", userGrant("u", "root")),
		call("grant unknown role", userGrant("u", "zz")), call("grant unknown user", userGrant("zz", "r")),
		call("user get with roles", &pb.AuthUserGetRequest{Name: "u"}),
		call("revoke role", &pb.AuthUserRevokeRoleRequest{Name: "u", Role: "q"}), call("revoke role again", &pb.AuthUserRevokeRoleRequest{Name: "u", Role: "q"}),
		call("revoke role unknown user", &pb.AuthUserRevokeRoleRequest{Name: "zz", Role: "q"}),
		call("delete role in use", &pb.AuthRoleDeleteRequest{Role: "r"}), call("delete unknown role", &pb.AuthRoleDeleteRequest{Role: "r"}),
		call("user get after role delete", &pb.AuthUserGetRequest{Name: "u"}),
		call("delete user", &pb.AuthUserDeleteRequest{Name: "u"}), call("delete unknown user", &pb.AuthUserDeleteRequest{Name: "u"}),
		call("status in the end", authStatus), call("REV-4 no revision", Get("a")),
		{"restart", Restart(true)},
		call("status after restart", authStatus), call("users after restart", &pb.AuthUserListRequest{}), call("roles after restart", &pb.AuthRoleListRequest{}),
		call("role after restart", &pb.AuthRoleGetRequest{Role: "q"}),
	}
}

func authEnabled() []Step {
	const read, write, both = authpb.Permission_READ, authpb.Permission_WRITE, authpb.Permission_READWRITE
	root, u := As("root"), As("u")
	steps := []Step{
		call("root", userAdd("root", "pw")), call("grant root", userGrant("root", "root")),
		call("u", userAdd("u", "x")), call("role", &pb.AuthRoleAddRequest{Name: "r"}), call("bare", userAdd("bare", "x")),
		call("nopw", &pb.AuthUserAddRequest{Name: "nopw", Options: &authpb.UserAddOptions{NoPassword: true}}),
		call("read", permit("r", read, "ro", "rp")), call("write", permit("r", write, "wo", "wp")), call("both", permit("r", both, "a", "c")),
		call("adjacent", permit("r", both, "c", "d")), call("grant r", userGrant("u", "r")),
		call("secret", Put("secret", "1")), call("ro1", Put("ro1", "1")),
		call("AUT-5 enable", &pb.AuthEnableRequest{}), call("AUT-5 enable again", &pb.AuthEnableRequest{}),
		call("AUT-10 status without token", authStatus),
		call("AUT-10 range", Get("a")), call("AUT-10 put", Put("a", "1")), call("AUT-10 txn", Do(Ops(Get("a"))...)), call("AUT-10 delete", Delete("a")),
		call("AUT-10 compact", Compact(2)), call("AUT-10 grant", Grant(1, 100)), call("AUT-10 maintenance status", &pb.StatusRequest{}),
		call("AUT-10 members", &pb.MemberListRequest{}), call("AUT-10 leases", &pb.LeaseLeasesRequest{}), call("AUT-10 ttl", &pb.LeaseTimeToLiveRequest{ID: 1}),
		call("AUT-10 alarm", &pb.AlarmRequest{}), call("AUT-10 users", &pb.AuthUserListRequest{}), call("AUT-10 hash", &pb.HashKVRequest{}),
		{"AUT-10 stream", Stream(Get("a"))}, {"AUT-10 keepalive", KeepAlive(1)},
		call("AUT-10 bad token", Get("a"), With("token", "nonsense.1")), call("AUT-10 bad authorization", Get("a"), With("authorization", "Bearer nonsense.1")),
		call("GRPC-16 health", healthCheck("")), {"HTTP-2 health", HTTP("GET", "/health", "")}, {"HTTP-4 readyz", HTTP("GET", "/readyz", "")},
		call("AUT-11 wrong password", &pb.AuthenticateRequest{Name: "root", Password: "no"}),
		call("AUT-11 unknown user", &pb.AuthenticateRequest{Name: "zz", Password: "no"}),
		call("AUT-11 ERR-4 no-password user", &pb.AuthenticateRequest{Name: "nopw", Password: ""}),
		{"AUT-11 AUT-12 root", Login("root", "pw")}, {"AUT-11 u", Login("u", "x")}, {"bare login", Login("bare", "x")},
	}
	steps = append(steps, authPermissions(root, u)...)
	return append(steps, authRest(root, u)...)
}

func authPermissions(root, u CallOption) []Step {
	steps := []Step{
		call("AUT-15 read", Get("ro1"), u), call("AUT-15 read range", List("ro", "rp"), u), call("AUT-15 read too wide", List("ro", "rq"), u),
		call("AUT-15 union of two", List("a", "d"), u), call("AUT-15 beyond union", List("a", "e"), u), call("AUT-15 from on", List("a", "\x00"), u),
		call("AUT-15 not permitted", Get("secret"), u), call("AUT-15 write only", Get("wo1"), u),
		call("AUT-15 RNG-18 future and not permitted", &pb.RangeRequest{Key: []byte("secret"), Revision: 999}, u),
		call("AUT-16 put", Put("a", "1"), u), call("AUT-16 put read only", Put("ro1", "1"), u), call("AUT-16 put write only", Put("wo1", "1"), u),
		call("AUT-16 put with prev needs read", &pb.PutRequest{Key: []byte("wo1"), PrevKv: true}, u),
		call("AUT-16 put with prev", &pb.PutRequest{Key: []byte("a"), PrevKv: true}, u),
		call("AUT-16 delete", Delete("wo1"), u), call("AUT-16 delete with prev needs read", &pb.DeleteRangeRequest{Key: []byte("wo1"), PrevKv: true}, u),
		call("AUT-16 delete too wide", DeleteAll("a", "z"), u), call("AUT-16 delete read only", Delete("ro1"), u),
		call("AUT-16 txn", Txn(If(Version("a", Greater, 0)), Ops(Get("ro1"), Put("a", "2")), nil), u),
		call("AUT-16 txn compare", Txn(If(Version("secret", Greater, 0)), nil, nil), u),
		call("AUT-16 txn branch not taken", Txn(nil, nil, Ops(Put("secret", "2"))), u),
		call("AUT-16 txn nested", Do(Ops(Do(Ops(Get("secret"))...))...), u),
		call("AUT-16 txn range compare", Txn(If(Over(Version("a", Greater, 0), "d")), nil, nil), u),
		{"open", Open("w", u)}, {"AUT-16 watch", Ask("w", 1, over("a", "c", 0))}, {"WCH-18 AUT-16 watch too wide", Ask("w", 1, over("a", "z", 0))},
		{"WCH-18 watch write only", Ask("w", 1, from("wo1", 0))}, call("AUT-16 put seen", Put("b", "1"), u), {"AUT-16 event", Recv("w", 1)},
		{"open none", Open("none")}, {"WCH-18 without token", Ask("none", 1, from("a", 0))},
		call("AUT-17 grant", Grant(1, 1000), u), call("AUT-16 put with lease", PutLease("a", "3", 1), u), call("AUT-17 ttl", &pb.LeaseTimeToLiveRequest{ID: 1, Keys: true}, u),
		call("AUT-16 root puts secret with the lease", PutLease("secret", "1", 1), root),
		call("AUT-16 put with a lease on a secret", PutLease("b", "3", 1), u), call("AUT-16 revoke a lease on a secret", &pb.LeaseRevokeRequest{ID: 1}, u),
		call("AUT-16 ttl with keys of a secret", &pb.LeaseTimeToLiveRequest{ID: 1, Keys: true}, u), call("AUT-17 leases", &pb.LeaseLeasesRequest{}, u),
		call("AUT-16 revoke by root", &pb.LeaseRevokeRequest{ID: 1}, root),
		call("AUT-15 no roles", Get("a"), As("bare")), call("AUT-15 root all", All(0), root),
	}
	admin := []Step{
		call("compact", Compact(3), u), call("defragment", &pb.DefragmentRequest{}, u), call("hash", &pb.HashRequest{}, u), call("hash kv", &pb.HashKVRequest{}, u),
		call("move", &pb.MoveLeaderRequest{TargetID: Self}, u), call("downgrade", &pb.DowngradeRequest{Version: "3.6"}, u),
		call("alarm get", &pb.AlarmRequest{}, u), call("alarm raise", &pb.AlarmRequest{Action: raise, MemberID: Self, Alarm: corrupt}, u),
		call("status", &pb.StatusRequest{}, u), call("members", &pb.MemberListRequest{}, u), call("member add", &pb.MemberAddRequest{PeerURLs: []string{"http://127.0.0.1:1"}}, u),
		call("users", &pb.AuthUserListRequest{}, u), call("roles", &pb.AuthRoleListRequest{}, u),
		call("own user", &pb.AuthUserGetRequest{Name: "u"}, u), call("other user", &pb.AuthUserGetRequest{Name: "root"}, u),
		call("own role", &pb.AuthRoleGetRequest{Role: "r"}, u), call("other role", &pb.AuthRoleGetRequest{Role: "root"}, u),
		call("user add", userAdd("x", "y"), u), call("disable", &pb.AuthDisableRequest{}, u), call("change own password", &pb.AuthUserChangePasswordRequest{Name: "u", Password: "x"}, u),
		call("auth status", authStatus, u),
	}
	for _, st := range admin {
		steps = append(steps, Step{fmt.Sprintf("AUT-17 %s by a user", st.Name), st.Op})
	}
	return steps
}

func authRest(root, u CallOption) []Step {
	return []Step{
		call("compact by root", Compact(3), root), call("hash kv by root", &pb.HashKVRequest{}, root), call("users by root", &pb.AuthUserListRequest{}, root),
		call("AUT-12 authorization", Get("a"), With("authorization", "nonsense")),
		call("delete root while enabled", &pb.AuthUserDeleteRequest{Name: "root"}, root),
		call("delete role root while enabled", &pb.AuthRoleDeleteRequest{Role: "root"}, root),
		call("revoke root from root while enabled", &pb.AuthUserRevokeRoleRequest{Name: "root", Role: "root"}, root),
		call("AUT-12 other change", userAdd("later", "x"), root), call("AUT-12 token survives it", Get("a"), u),
		call("AUT-12 change password", &pb.AuthUserChangePasswordRequest{Name: "u", Password: "new"}, root),
		call("AUT-12 token is gone", Get("a"), u), {"AUT-11 old password", Login("u", "x")}, {"AUT-11 new password", Login("u", "new")}, call("works", Get("a"), u),
		call("take the role", &pb.AuthUserRevokeRoleRequest{Name: "u", Role: "r"}, root), call("AUT-15 nothing left", Get("a"), u),
		call("AUT-12 delete user", &pb.AuthUserDeleteRequest{Name: "bare"}, root), call("AUT-12 its token is gone", Get("a"), As("bare")),
		{"restart", Restart(true)},
		call("AUT-10 enabled after restart", Get("a")), call("AUT-12 token lost at restart", Get("a"), root),
		{"log in again", Login("root", "pw")}, call("AUT-2 status by root", authStatus, root),
		call("AUT-4 disable", &pb.AuthDisableRequest{}, root), call("AUT-2 disabled", authStatus), call("AUT-1 after disable", All(0)),
	}
}
