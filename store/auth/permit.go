package auth

// Access is what a request wants of keys.
type Access int8

const (
	ToRead Access = iota
	ToWrite
)

// Admin returns nil if c may do what only the role root may.
//
// ErrUserEmpty, ErrUserNotFound and ErrPermissionDenied are returned when it may not.
func (s *State) Admin(c Caller) error {
	if !s.enabled || c.trusted {
		return nil
	}
	if c.User == "" {
		return ErrUserEmpty
	}
	switch u := s.users[c.User]; {
	case u == nil:
		return ErrUserNotFound
	case !u.Has(Root):
		return ErrPermissionDenied
	}
	return nil
}

// Known returns nil if c is somebody, whoever it is.
//
// ErrUserEmpty is returned for nobody.
func (s *State) Known(c Caller) error {
	if s.enabled && c.Anonymous() {
		return ErrUserEmpty
	}
	return nil
}

// Allow returns nil if c has the wanted access to the key, if end is empty, or to all
// keys in [key, end), as in Permission.
//
// ErrUserEmpty, ErrOldRevision and ErrPermissionDenied are returned when it has not.
func (s *State) Allow(c Caller, want Access, key, end []byte) error {
	if !s.enabled || c.trusted {
		return nil
	}
	if c.Anonymous() {
		return ErrUserEmpty
	}
	if c.Revision < s.revision {
		return ErrOldRevision
	}
	u := s.users[c.User]
	if u == nil {
		return ErrPermissionDenied
	}
	if u.Has(Root) || s.grantsOf(u).covers(want, string(key), string(end)) {
		return nil
	}
	return ErrPermissionDenied
}

// UserVisible returns nil if c may look at a user: the role root may, and the
// user itself.
func (s *State) UserVisible(c Caller, name string) error {
	if err := s.Admin(c); err != nil && c.User != name {
		return err
	}
	return nil
}

// RoleVisible returns nil if c may look at a role: the role root may, and who has
// the role.
func (s *State) RoleVisible(c Caller, role string) error {
	err := s.Admin(c)
	if err == nil {
		return nil
	}
	if u := s.users[c.User]; u != nil && u.Has(role) {
		return nil
	}
	return err
}
