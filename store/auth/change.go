package auth

// The changes. Each method checks one and returns what it comes to; nil without an error
// if there is nothing to do.

// next is an update with the next revision.
func (s *State) next() *Update { return &Update{Revision: s.revision + 1} }

// Enable switches access control on. The revision stays (etcd's way): who comes
// without credentials is refused, whatever the revision.
//
// ErrRootUserMissing and ErrRootRoleMissing are returned when nobody would be in control.
func (s *State) Enable() (*Update, error) {
	if s.enabled {
		return nil, nil
	}
	root := s.users[Root]
	if root == nil {
		return nil, ErrRootUserMissing
	}
	if !root.Has(Root) {
		return nil, ErrRootRoleMissing
	}
	return &Update{Revision: s.revision, Switch: SwitchOn}, nil
}

// Disable switches access control off. Users and roles stay.
func (s *State) Disable() (*Update, error) {
	if !s.enabled {
		return nil, nil
	}
	u := s.next()
	u.Switch = SwitchOff
	return u, nil
}
