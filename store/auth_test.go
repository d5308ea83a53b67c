package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tarn-kv/tarn/store/auth"
)

type authPlan = func(*auth.State) (*auth.Update, error)

func addUser(name string) authPlan {
	return func(s *auth.State) (*auth.Update, error) { return s.AddUser(name, []byte("hash of "+name), false) }
}

func addRole(name string) authPlan {
	return func(s *auth.State) (*auth.Update, error) { return s.AddRole(name) }
}

func giveRole(user, role string) authPlan {
	return func(s *auth.State) (*auth.Update, error) { return s.GrantRole(user, role) }
}

func takeRole(user, role string) authPlan {
	return func(s *auth.State) (*auth.Update, error) { return s.RevokeRole(user, role) }
}

func allow(role string, kind auth.Kind, key, end string) authPlan {
	return func(s *auth.State) (*auth.Update, error) {
		return s.GrantPermission(role, auth.Permission{Kind: kind, Key: key, End: end})
	}
}

// authPlans are changes of every kind that can be made over and over.
var authPlans = []authPlan{
	addUser("root"), giveRole("root", "root"), addUser("u"), addRole("r"), allow("r", auth.Read, "a", "c"),
	giveRole("u", "r"), (*auth.State).Enable, allow("r", auth.Write, "a", ""), addUser("v"), giveRole("v", "r"),
	func(s *auth.State) (*auth.Update, error) { return s.SetPassword("u", []byte("other")) },
	(*auth.State).Disable,
	func(s *auth.State) (*auth.Update, error) { return s.RevokePermission("r", "a", "") },
	takeRole("v", "r"),
	func(s *auth.State) (*auth.Update, error) { return s.DeleteRole("r") },
	func(s *auth.State) (*auth.Update, error) { return s.DeleteUser("u") },
	func(s *auth.State) (*auth.Update, error) { return s.DeleteUser("v") },
	func(s *auth.State) (*auth.Update, error) { return s.DeleteUser("root") },
}

// authText describes users and roles.
func authText(s *auth.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "on=%v rev=%d", s.Enabled(), s.Revision())
	for _, n := range s.Users() {
		u := s.User(n)
		fmt.Fprintf(&b, " %s:%s%v", n, u.Password, u.Roles)
	}
	for _, n := range s.Roles() {
		p, err := s.RolePermissions(n)
		fmt.Fprintf(&b, " %s=%q%v", n, p, err)
	}
	return b.String()
}

func changeAuth(t testing.TB, s *Store, plans ...authPlan) {
	t.Helper()
	for i, p := range plans {
		if err := s.ChangeAuth(bg, p); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
}

// guarded is a store with access control, root, and a user u who may read a to c
// and write w to x.
func guarded(t testing.TB) *Store {
	t.Helper()
	s := testStore(t)
	changeAuth(t, s, addUser("root"), giveRole("root", "root"), addUser("u"), addRole("r"), giveRole("u", "r"),
		allow("r", auth.Read, "a", "c"), allow("r", auth.Write, "w", "x"), allow("r", auth.ReadWrite, "m", "n"), (*auth.State).Enable)
	return s
}

// TestAuthSurvives: what was changed is there after a restart, from the log and from the tree.
func TestAuthSurvives(t *testing.T) {
	s := testStore(t)
	for i, plan := range authPlans {
		changeAuth(t, s, plan)
		want := authText(s.Auth())
		switch i % 3 {
		case 0: // from the log alone, as after a crash: a copy of the files
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(s.opts.Dir)))
			crashed := openStore(t, Options{Dir: dir})
			if got := authText(crashed.Auth()); got != want {
				t.Fatalf("after change %d and a crash: %s, want %s", i, got, want)
			}
			must(t, crashed.Close())
		case 1:
			must(t, s.Checkpoint(bg))
		case 2:
			s = reopen(t, s)
		}
		if got := authText(s.Auth()); got != want {
			t.Fatalf("after change %d: %s, want %s", i, got, want)
		}
	}
	must(t, s.Close())
	if r, err := Check(bg, s.opts.Dir); err != nil || len(r.Findings) > 0 {
		t.Errorf("check: %q, %v", r.Findings, err)
	}
}

// The buckets are those that etcd reads (11.1).
func TestAuthInTree(t *testing.T) {
	s := testStore(t)
	before, _, err := s.Hash(bg)
	must(t, err)
	changeAuth(t, s, authPlans[:7]...)
	after, _, err := s.Hash(bg)
	must(t, err)
	if before == after {
		t.Error("MNT-2: the hash does not see users and roles")
	}
	must(t, s.Close())
	db, err := bolt.Open(s.opts.Dir+"/"+treeName, 0o600, &bolt.Options{ReadOnly: true})
	must(t, err)
	defer db.Close()
	var got []string
	must(t, db.View(func(tx *bolt.Tx) error {
		for _, name := range []string{"auth", "authUsers", "authRoles"} {
			must(t, tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error {
				got = append(got, fmt.Sprintf("%s %s %x", name, k, v))
				return nil
			}))
		}
		return nil
	}))
	want := []string{
		"auth authEnabled 01", "auth authRevision 0000000000000007",
		fmt.Sprintf("authUsers root 0a04%x120c%x1a04%x2200", "root", "hash of root", "root"),
		fmt.Sprintf("authUsers u 0a01%x1209%x1a01%x2200", "u", "hash of u", "r"),
		fmt.Sprintf("authRoles r 0a01%x1206%s", "r", "120161"+"1a0163"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCheckFindsBadAuth(t *testing.T) {
	for name, change := range map[string]func(*bolt.Tx) error{
		"name": func(tx *bolt.Tx) error { return tx.Bucket([]byte("authUsers")).Put([]byte("x"), []byte("\x0a\x01y")) },
		"protobuf": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("authRoles")).Put([]byte("r"), []byte("\x0a\x01r\x12\x05"))
		},
		"revision": func(tx *bolt.Tx) error { return tx.Bucket([]byte("auth")).Put([]byte("authRevision"), []byte{1}) },
		"enabled":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("auth")).Put([]byte("authEnabled"), []byte{2}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			changeAuth(t, s, authPlans[:7]...)
			must(t, s.Checkpoint(bg))
			changeAuth(t, s, authPlans[7]) // in the log alone
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(s.opts.Dir)))
			must(t, s.Close())
			db, err := bolt.Open(dir+"/"+treeName, 0o600, nil)
			must(t, err)
			must(t, errors.Join(db.Update(change), db.Close()))
			r, err := Check(bg, dir)
			must(t, err)
			if len(r.Findings) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}
