package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// applied applies a change, which must succeed, over the form in which the log keeps it.
func applied(t *testing.T, s *State, u *Update, err error) *State {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if u == nil {
		return s
	}
	again, err := ParseUpdate(u.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Apply(again)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// setup applies words: "user NAME", "role NAME", "give USER ROLE",
// "allow ROLE r|w|rw KEY [END]", "on", "off".
func setup(t *testing.T, s *State, lines ...string) *State {
	t.Helper()
	for _, line := range lines {
		f := strings.Fields(line)
		var u *Update
		var err error
		switch f[0] {
		case "user":
			u, err = s.AddUser(f[1], []byte("hash of "+f[1]), false)
		case "role":
			u, err = s.AddRole(f[1])
		case "give":
			u, err = s.GrantRole(f[1], f[2])
		case "allow":
			p := Permission{Kind: map[string]Kind{"r": Read, "w": Write, "rw": ReadWrite}[f[2]], Key: f[3]}
			if len(f) > 4 {
				p.End = strings.ReplaceAll(f[4], "0", "\x00")
			}
			u, err = s.GrantPermission(f[1], p)
		case "on":
			u, err = s.Enable()
		case "off":
			u, err = s.Disable()
		default:
			t.Fatalf("unknown word %q", f[0])
		}
		s = applied(t, s, u, err)
	}
	return s
}

// withRoot is a state in which access control is on.
func withRoot(t *testing.T, lines ...string) *State {
	t.Helper()
	return setup(t, New(), append([]string{"user root", "give root root", "on"}, lines...)...)
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func (s *State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "on=%v rev=%d", s.enabled, s.revision)
	for _, n := range s.Users() {
		u := s.User(n)
		fmt.Fprintf(&b, "; user %s %q %v", u.Name, u.Password, u.Roles)
		if u.NoPassword {
			b.WriteString(" nopassword")
		}
	}
	for _, n := range s.Roles() {
		fmt.Fprintf(&b, "; role %s %q", n, s.roles[n].Permissions)
	}
	return b.String()
}

func roleRanges(s *State, role string) string {
	var all []string
	for _, p := range s.roles[role].Permissions {
		all = append(all, fmt.Sprintf("%d %q %q", p.Kind, p.Key, p.End))
	}
	return strings.Join(all, ", ")
}

var wants = []Access{ToRead, ToWrite}

func allows(k Kind, want Access) bool {
	return k == ReadWrite || k == Read && want == ToRead || k == Write && want == ToWrite
}
