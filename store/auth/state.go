// Package auth decides who may do what: users, roles with permissions on key
// ranges, and whether access control is on. It does no I/O and has no locks: a
// State never changes, and a change makes another one.
//
// DESIGN.md says how the parts work together.
package auth

import (
	"maps"
	"slices"
	"sync"
)

// Root is the name of the user and of the role that may do everything.
const Root = "root"

// FirstRevision is the revision of a state in which nothing was ever configured.
const FirstRevision = 1

// Kind is what a permission allows, with etcd's numbers.
type Kind int32

const (
	Read      Kind = 0
	Write     Kind = 1
	ReadWrite Kind = 2
)

// Permission allows something on the key Key if End is empty, else on the keys
// in [Key, End). An End of one zero byte means no upper end.
type Permission struct {
	Kind     Kind
	Key, End string
}

// User is somebody who can be granted roles.
type User struct {
	Name     string
	Password []byte   // bcrypt's text; empty if none fits
	Roles    []string // ascending
	// Options is whether the record says anything about NoPassword. The records
	// of old versions of etcd do not.
	Options    bool
	NoPassword bool // a user who comes with a certificate only
}

// Has reports whether the user was granted a role.
func (u *User) Has(role string) bool {
	_, ok := slices.BinarySearch(u.Roles, role)
	return ok
}

// Role is a named set of permissions, ascending by key.
type Role struct {
	Name        string
	Permissions []Permission
}

// State is all users and roles at one moment. What it gives out is shared and
// must not be changed. It may be used by any number of goroutines.
type State struct {
	enabled  bool
	revision uint64
	users    map[string]*User
	roles    map[string]*Role

	grants sync.Map // user name → *grants; filled when a user first asks for something
}

// New returns a state without users and roles, in which all is allowed.
func New() *State {
	return &State{revision: FirstRevision, users: map[string]*User{}, roles: map[string]*Role{}}
}

// Enabled reports whether access control is on.
func (s *State) Enabled() bool { return s.enabled }

// Revision counts the changes; it begins with FirstRevision.
func (s *State) Revision() uint64 { return s.revision }

// User returns a user, or nil.
func (s *State) User(name string) *User { return s.users[name] }

// Users returns the names of all users, ascending.
func (s *State) Users() []string { return slices.Sorted(maps.Keys(s.users)) }

// Roles returns the names of all roles, ascending.
func (s *State) Roles() []string { return slices.Sorted(maps.Keys(s.roles)) }

// RolePermissions returns the permissions of a role; for the role root the one
// permission that it stands for.
//
// ErrRoleNotFound is returned when there is no such role.
func (s *State) RolePermissions(name string) ([]Permission, error) {
	r := s.roles[name]
	switch {
	case r == nil:
		return nil, ErrRoleNotFound
	case name == Root:
		return []Permission{{Kind: ReadWrite, End: "\x00"}}, nil
	default:
		return r.Permissions, nil
	}
}

// clone is a copy to be changed before anybody else sees it.
func (s *State) clone() *State {
	return &State{enabled: s.enabled, revision: s.revision, users: maps.Clone(s.users), roles: maps.Clone(s.roles)}
}
