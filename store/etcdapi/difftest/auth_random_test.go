package difftest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// TestAuthRandom grants random permissions and tries random requests: what a request
// may touch is the union of what the user's roles allow (AUT-15, AUT-16).
func TestAuthRandom(t *testing.T) {
	seed := number(t, EnvSeed, uint64(time.Now().UnixNano()))
	g := newGenerator(seed)
	steps := []Step{
		call("root", userAdd("root", "pw")), call("grant root", userGrant("root", "root")), call("u", userAdd("u", "x")),
		call("role 0", &pb.AuthRoleAddRequest{Name: "r0"}), call("role 1", &pb.AuthRoleAddRequest{Name: "r1"}),
		call("grant 0", userGrant("u", "r0")), call("grant 1", userGrant("u", "r1")),
		call("enable", &pb.AuthEnableRequest{}), {"root logs in", Login("root", "pw")}, {"u logs in", Login("u", "x")},
	}
	ends := map[string]string{} // one for each key of a role: see deviations.go
	for i := range 30 {
		role, kind, key := fmt.Sprintf("r%d", g.IntN(2)), authpb.Permission_Type(g.IntN(3)), string(g.key())
		if _, ok := ends[role+key]; !ok {
			ends[role+key] = string(g.end(true))
		}
		grant := permit(role, kind, key, ends[role+key])
		steps = append(steps, call(fmt.Sprintf("%d permit", i), grant, As("root")))
		if g.chance(40) {
			revoke := &pb.AuthRoleRevokePermissionRequest{Role: role, Key: grant.Perm.Key, RangeEnd: grant.Perm.RangeEnd}
			steps = append(steps, call(fmt.Sprintf("%d take back", i), revoke, As("root")))
		}
		for j := range 12 {
			steps = append(steps, call(fmt.Sprintf("%d.%d AUT-15 AUT-16", i, j), g.guarded(), As("u")))
		}
	}
	steps = append(steps, call("disable", &pb.AuthDisableRequest{}, As("root")))
	suite.Run(t, []Case{{Name: fmt.Sprintf("seed %d", seed), Steps: steps}})
}

// guarded is a request for keys that may not be allowed.
func (g *generator) guarded() proto.Message {
	key, end := g.key(), g.end(true)
	if bytes.Compare(end, key) <= 0 && !bytes.Equal(end, []byte{0}) {
		end = nil // whether a range that can hold no key is allowed depends on the shape of etcd's tree
	}
	switch g.IntN(6) {
	case 0:
		return &pb.PutRequest{Key: key, Value: []byte("v"), PrevKv: g.chance(50)}
	case 1:
		return &pb.DeleteRangeRequest{Key: key, RangeEnd: end, PrevKv: g.chance(50)}
	case 2:
		return Txn(If(Version(string(g.key()), Greater, 0)), Ops(&pb.RangeRequest{Key: key, RangeEnd: end}), Ops(Put(string(g.key()), "v")))
	default:
		return &pb.RangeRequest{Key: key, RangeEnd: end}
	}
}

// jwtFlags makes a key and the flags to sign tokens with it.
func jwtFlags(t *testing.T) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--auth-token", "jwt,sign-method=ES256,priv-key=" + path + ",ttl=10m", "--bcrypt-cost", "4"}
}

// authJWT has tokens that name a revision of users and roles (AUT-13).
func authJWT() []Step {
	const both = authpb.Permission_READWRITE
	root, u := As("root"), As("u")
	return []Step{
		call("root", userAdd("root", "pw")), call("grant root", userGrant("root", "root")), call("u", userAdd("u", "x")),
		call("role", &pb.AuthRoleAddRequest{Name: "r"}), call("grant r", userGrant("u", "r")), call("permit", permit("r", both, "a", "c")),
		call("lease", Grant(1, 1000)), call("enable", &pb.AuthEnableRequest{}),
		{"root logs in", Login("root", "pw")}, {"u logs in", Login("u", "x")},
		call("AUT-13 put", Put("a", "1"), u), call("AUT-13 get", Get("a"), u), call("AUT-15 secret", Get("z"), u),
		call("AUT-13 change", userAdd("later", "x"), root),
		call("AUT-13 old get", Get("a"), u), call("AUT-13 old put", Put("a", "2"), u), call("AUT-13 old txn", Do(Ops(Get("a"))...), u),
		call("AUT-13 old delete", Delete("a"), u), call("AUT-13 old status", &pb.StatusRequest{}, u), call("AUT-13 old grant", Grant(2, 1000), u),
		{"AUT-13 open old", Open("w", u)}, {"AUT-13 WCH-18 old watch", Ask("w", 1, from("a", 0))},
		call("AUT-13 old of root", Get("a"), root), call("AUT-13 old of root changes users", userAdd("later2", "x"), root),
		call("AUT-13 old of root compacts", Compact(2), root),
		call("AUT-10 nonsense", Get("a"), With("token", "a.b.c")),
		{"u logs in again", Login("u", "x")}, call("AUT-13 new get", Get("a"), u),
		{"restart", Restart(true)}, call("AUT-13 token outlives a restart", Get("a"), u),
		{"root logs in again", Login("root", "pw")}, call("delete u", &pb.AuthUserDeleteRequest{Name: "u"}, root),
		call("AUT-13 deleted user", Get("a"), u), call("AUT-13 status of a deleted user", &pb.StatusRequest{}, u),
		call("AUT-13 compaction by a deleted user", Compact(2), u),
		call("AUT-13 disable", &pb.AuthDisableRequest{}, root),
	}
}

// authExported has users and roles in a snapshot, which a real etcd then serves (11.1).
func authExported() []Step {
	const read, both = authpb.Permission_READ, authpb.Permission_READWRITE
	return []Step{
		call("root", userAdd("root", "pw")), call("grant root", userGrant("root", "root")), call("u", userAdd("u", "x")),
		call("nopw", &pb.AuthUserAddRequest{Name: "n", Options: &authpb.UserAddOptions{NoPassword: true}}),
		call("role r", &pb.AuthRoleAddRequest{Name: "r"}), call("role q", &pb.AuthRoleAddRequest{Name: "q"}),
		call("grant r", userGrant("u", "r")), call("grant q", userGrant("u", "q")), call("gone", userAdd("gone", "x")),
		call("permit", permit("r", both, "a", "c")), call("permit more", permit("r", read, "x", "\x00")), call("permit key", permit("q", both, "k", "")),
		call("put", Put("a", "1")), call("delete a user", &pb.AuthUserDeleteRequest{Name: "gone"}),
		{"11.1 restored", Exported(authStatus, &pb.AuthUserListRequest{}, &pb.AuthRoleListRequest{},
			&pb.AuthUserGetRequest{Name: "u"}, &pb.AuthRoleGetRequest{Role: "r"}, &pb.AuthRoleGetRequest{Role: "q"},
			&pb.AuthEnableRequest{}, &pb.AuthenticateRequest{Name: "u", Password: "no"}, &pb.AuthenticateRequest{Name: "n", Password: "x"}, authStatus)},
		call("enable", &pb.AuthEnableRequest{}), {"root logs in", Login("root", "pw")},
		call("disable", &pb.AuthDisableRequest{}, As("root")),
		{"11.1 restored after it was on", Exported(authStatus, &pb.AuthUserListRequest{}, Get("a"))},
	}
}
