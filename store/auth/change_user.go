package auth

import "slices"

// putUser is an update that writes one user.
func (s *State) putUser(x User) *Update {
	u := s.next()
	u.Users = []Record{{Name: x.Name, Value: x.encode()}}
	return u
}

// AddUser adds a user with bcrypt's text for the password; none for noPassword.
//
// ErrUserEmpty and ErrUserExists are returned when it can not.
func (s *State) AddUser(name string, password []byte, noPassword bool) (*Update, error) {
	if name == "" {
		return nil, ErrUserEmpty
	}
	if s.users[name] != nil {
		return nil, ErrUserExists
	}
	if noPassword {
		password = nil
	}
	return s.putUser(User{Name: name, Password: password, Options: true, NoPassword: noPassword}), nil
}

// DeleteUser removes a user.
//
// ErrInvalidManagement is returned for root while access control is on, and
// ErrUserNotFound when there is no such user.
func (s *State) DeleteUser(name string) (*Update, error) {
	if s.enabled && name == Root {
		return nil, ErrInvalidManagement
	}
	if s.users[name] == nil {
		return nil, ErrUserNotFound
	}
	u := s.next()
	u.Users = []Record{{Name: name}}
	return u, nil
}

// SetPassword gives a user another password, as bcrypt's text. A user without password
// stays without one.
//
// ErrUserNotFound is returned when there is no such user.
func (s *State) SetPassword(name string, password []byte) (*Update, error) {
	old := s.users[name]
	if old == nil {
		return nil, ErrUserNotFound
	}
	x := *old
	x.Password = password
	if x.NoPassword {
		x.Password = nil
	}
	return s.putUser(x), nil
}

// GrantRole gives a user a role. The role root need not exist.
//
// ErrUserNotFound and ErrRoleNotFound are returned when there is no such user or role.
func (s *State) GrantRole(name, role string) (*Update, error) {
	old := s.users[name]
	switch {
	case old == nil:
		return nil, ErrUserNotFound
	case role != Root && s.roles[role] == nil:
		return nil, ErrRoleNotFound
	case old.Has(role):
		return nil, nil
	}
	x := *old
	i, _ := slices.BinarySearch(x.Roles, role)
	x.Roles = slices.Insert(slices.Clone(x.Roles), i, role)
	return s.putUser(x), nil
}

// RevokeRole takes a role from a user.
//
// ErrInvalidManagement is returned for the role root of root while access
// control is on; ErrUserNotFound and ErrRoleNotGranted when there is nothing to take.
func (s *State) RevokeRole(name, role string) (*Update, error) {
	if s.enabled && name == Root && role == Root {
		return nil, ErrInvalidManagement
	}
	old := s.users[name]
	if old == nil {
		return nil, ErrUserNotFound
	}
	if !old.Has(role) {
		return nil, ErrRoleNotGranted
	}
	return s.putUser(old.without(role)), nil
}

// without is the user less a role.
func (u *User) without(role string) User {
	x := *u
	x.Roles = slices.DeleteFunc(slices.Clone(u.Roles), func(r string) bool { return r == role })
	return x
}
