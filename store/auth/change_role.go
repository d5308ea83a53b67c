package auth

import (
	"cmp"
	"slices"
)

// putRole is an update that writes one role.
func (s *State) putRole(x Role) *Update {
	u := s.next()
	u.Roles = []Record{{Name: x.Name, Value: x.encode()}}
	return u
}

// AddRole adds a role without permissions.
//
// ErrRoleEmpty and ErrRoleExists are returned when it can not.
func (s *State) AddRole(name string) (*Update, error) {
	if name == "" {
		return nil, ErrRoleEmpty
	}
	if s.roles[name] != nil {
		return nil, ErrRoleExists
	}
	return s.putRole(Role{Name: name}), nil
}

// DeleteRole removes a role, also from the users that have it.
//
// ErrInvalidManagement is returned for root while access control is on, and
// ErrRoleNotFound when there is no such role.
func (s *State) DeleteRole(name string) (*Update, error) {
	if s.enabled && name == Root {
		return nil, ErrInvalidManagement
	}
	if s.roles[name] == nil {
		return nil, ErrRoleNotFound
	}
	u := s.next()
	u.Roles = []Record{{Name: name}}
	for _, who := range s.Users() {
		if old := s.users[who]; old.Has(name) {
			x := old.without(name)
			u.Users = append(u.Users, Record{Name: who, Value: x.encode()})
		}
	}
	return u, nil
}

// GrantPermission gives a role a permission. If it has one on the very same range, that one
// becomes of this kind.
//
// ErrInvalidManagement is returned when the range can hold no key or begins with
// none, and ErrRoleNotFound when there is no such role.
func (s *State) GrantPermission(role string, p Permission) (*Update, error) {
	if p.Key == "" || p.End != "" && p.End != "\x00" && p.End <= p.Key {
		return nil, ErrInvalidManagement
	}
	old := s.roles[role]
	if old == nil {
		return nil, ErrRoleNotFound
	}
	x := Role{Name: role, Permissions: slices.Clone(old.Permissions)}
	same := slices.IndexFunc(x.Permissions, func(q Permission) bool { return q.Key == p.Key && q.End == p.End })
	if same >= 0 {
		x.Permissions[same] = p
	} else {
		x.Permissions = append(x.Permissions, p)
		slices.SortStableFunc(x.Permissions, func(a, b Permission) int { return cmp.Compare(a.Key, b.Key) })
	}
	return s.putRole(x), nil
}

// RevokePermission takes from a role what it has on a range.
//
// ErrRoleNotFound and ErrPermissionNotGranted are returned when there is nothing to take.
func (s *State) RevokePermission(role, key, end string) (*Update, error) {
	old := s.roles[role]
	if old == nil {
		return nil, ErrRoleNotFound
	}
	left := slices.DeleteFunc(slices.Clone(old.Permissions), func(q Permission) bool { return q.Key == key && q.End == end })
	if len(left) == len(old.Permissions) {
		return nil, ErrPermissionNotGranted
	}
	return s.putRole(Role{Name: role, Permissions: left}), nil
}
