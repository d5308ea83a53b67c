package auth

import "testing"

func TestChangeErrors(t *testing.T) {
	off := setup(t, New(), "user root", "give root root", "user u", "role r", "give u r", "allow r r k", "role root")
	on := setup(t, off, "on")
	for _, tt := range []struct {
		name string
		call func(*State) (*Update, error)
		off  error
		on   error
	}{
		{"user without a name", func(s *State) (*Update, error) { return s.AddUser("", nil, false) }, ErrUserEmpty, ErrUserEmpty},
		{"user again", func(s *State) (*Update, error) { return s.AddUser("u", nil, false) }, ErrUserExists, ErrUserExists},
		{"delete unknown user", func(s *State) (*Update, error) { return s.DeleteUser("x") }, ErrUserNotFound, ErrUserNotFound},
		{"delete root", func(s *State) (*Update, error) { return s.DeleteUser(Root) }, nil, ErrInvalidManagement},
		{"password of unknown user", func(s *State) (*Update, error) { return s.SetPassword("x", nil) }, ErrUserNotFound, ErrUserNotFound},
		{"grant to unknown user", func(s *State) (*Update, error) { return s.GrantRole("x", "r") }, ErrUserNotFound, ErrUserNotFound},
		{"grant unknown role", func(s *State) (*Update, error) { return s.GrantRole("u", "x") }, ErrRoleNotFound, ErrRoleNotFound},
		{"revoke from unknown user", func(s *State) (*Update, error) { return s.RevokeRole("x", "r") }, ErrUserNotFound, ErrUserNotFound},
		{"revoke what was not granted", func(s *State) (*Update, error) { return s.RevokeRole("u", "x") }, ErrRoleNotGranted, ErrRoleNotGranted},
		{"revoke root from root", func(s *State) (*Update, error) { return s.RevokeRole(Root, Root) }, nil, ErrInvalidManagement},
		{"role without a name", func(s *State) (*Update, error) { return s.AddRole("") }, ErrRoleEmpty, ErrRoleEmpty},
		{"role again", func(s *State) (*Update, error) { return s.AddRole("r") }, ErrRoleExists, ErrRoleExists},
		{"delete unknown role", func(s *State) (*Update, error) { return s.DeleteRole("x") }, ErrRoleNotFound, ErrRoleNotFound},
		{"delete role root", func(s *State) (*Update, error) { return s.DeleteRole(Root) }, nil, ErrInvalidManagement},
		{"permission without a key", func(s *State) (*Update, error) { return s.GrantPermission("r", Permission{}) }, ErrInvalidManagement, ErrInvalidManagement},
		{"permission that ends before it begins", func(s *State) (*Update, error) { return s.GrantPermission("r", Permission{Key: "b", End: "a"}) }, ErrInvalidManagement, ErrInvalidManagement},
		{"permission of unknown role", func(s *State) (*Update, error) { return s.GrantPermission("x", Permission{Key: "a"}) }, ErrRoleNotFound, ErrRoleNotFound},
		{"revoke permission of unknown role", func(s *State) (*Update, error) { return s.RevokePermission("x", "k", "") }, ErrRoleNotFound, ErrRoleNotFound},
		{"revoke other range", func(s *State) (*Update, error) { return s.RevokePermission("r", "k", "l") }, ErrPermissionNotGranted, ErrPermissionNotGranted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.call(off)
			wantErr(t, err, tt.off)
			_, err = tt.call(on)
			wantErr(t, err, tt.on)
		})
	}
}

func TestSwitch(t *testing.T) {
	t.Run("AUT-5", func(t *testing.T) {
		s := New()
		_, err := s.Enable()
		wantErr(t, err, ErrRootUserMissing)
		s = setup(t, s, "user root")
		_, err = s.Enable()
		wantErr(t, err, ErrRootRoleMissing)
		s = setup(t, s, "give root root")
		rev := s.Revision()
		if s = setup(t, s, "on", "on"); !s.Enabled() || s.Revision() != rev {
			t.Errorf("switched on: %v", s)
		}
		if s = setup(t, s, "off", "off"); s.Enabled() || s.Revision() != rev+1 {
			t.Errorf("switched off: %v", s)
		}
	})
}

func TestChanges(t *testing.T) {
	s := setup(t, New(), "user u", "user v", "role b", "role a", "give u b", "give u a", "give v a",
		"allow a r x", "allow a r k z", "allow a r k", "allow a w x", "give u a")
	if got, want := roleRanges(s, "a"), `0 "k" "z", 0 "k" "", 1 "x" ""`; got != want {
		t.Errorf("permissions %s, want %s", got, want)
	}
	if got := s.String(); got != `on=false rev=12; user u "hash of u" [a b]; user v "hash of v" [a]; role a [{'\x00' "k" "z"} {'\x00' "k" ""} {'\x01' "x" ""}]; role b []` {
		t.Errorf("state %s", got)
	}
	t.Run("delete a role in use", func(t *testing.T) {
		u, err := s.DeleteRole("a")
		got := applied(t, s, u, err)
		if got.Revision() != s.Revision()+1 || got.User("u").Has("a") || got.User("v").Has("a") || !got.User("u").Has("b") {
			t.Errorf("state %v", got)
		}
		if !s.User("u").Has("a") {
			t.Error("the state before has changed")
		}
	})
	t.Run("AUT-18/no password", func(t *testing.T) {
		u, err := s.AddUser("n", []byte("x"), true)
		got := applied(t, s, u, err)
		u, err = got.SetPassword("n", []byte("y"))
		got = applied(t, got, u, err)
		if x := got.User("n"); !x.NoPassword || len(x.Password) != 0 {
			t.Errorf("user %+v", x)
		}
	})
	t.Run("a password keeps the roles", func(t *testing.T) {
		u, err := s.SetPassword("u", []byte("new"))
		if x := applied(t, s, u, err).User("u"); string(x.Password) != "new" || !x.Has("a") || !x.Has("b") {
			t.Errorf("user %+v", x)
		}
	})
}
