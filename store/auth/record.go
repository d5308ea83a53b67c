package auth

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/protofield"
)

// Users and roles are kept as etcd keeps them: authpb.User and authpb.Role.

// Fields of the messages.
const (
	fieldName        = 1
	fieldPassword    = 2
	fieldRoles       = 3
	fieldOptions     = 4
	fieldNoPassword  = 1 // of the options
	fieldPermissions = 2
	fieldKind        = 1 // of a permission
	fieldKey         = 2
	fieldEnd         = 3
)

func (u *User) encode() []byte {
	b := appendText(nil, fieldName, u.Name)
	b = appendText(b, fieldPassword, string(u.Password))
	for _, r := range u.Roles {
		b = protowire.AppendTag(b, fieldRoles, protowire.BytesType)
		b = protowire.AppendString(b, r)
	}
	if u.Options || u.NoPassword {
		b = protowire.AppendTag(b, fieldOptions, protowire.BytesType)
		b = protowire.AppendBytes(b, appendNumber(nil, fieldNoPassword, protowire.EncodeBool(u.NoPassword)))
	}
	return b
}

func decodeUser(b []byte) (*User, error) {
	u := &User{}
	err := protofield.Each(b, func(num protowire.Number, v []byte, n uint64) error {
		switch num {
		case fieldName:
			u.Name = string(v)
		case fieldPassword:
			u.Password = append([]byte(nil), v...)
		case fieldRoles:
			u.Roles = append(u.Roles, string(v))
		case fieldOptions:
			u.Options = true
			return protofield.Each(v, func(num protowire.Number, _ []byte, n uint64) error {
				if num == fieldNoPassword {
					u.NoPassword = protowire.DecodeBool(n)
				}
				return nil
			})
		}
		return nil
	})
	return u, err
}

func (r *Role) encode() []byte {
	b := appendText(nil, fieldName, r.Name)
	for _, p := range r.Permissions {
		m := appendNumber(nil, fieldKind, uint64(p.Kind))
		m = appendText(m, fieldKey, p.Key)
		m = appendText(m, fieldEnd, p.End)
		b = protowire.AppendTag(b, fieldPermissions, protowire.BytesType)
		b = protowire.AppendBytes(b, m)
	}
	return b
}

func decodeRole(b []byte) (*Role, error) {
	r := &Role{}
	err := protofield.Each(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case fieldName:
			r.Name = string(v)
		case fieldPermissions:
			var p Permission
			err := protofield.Each(v, func(num protowire.Number, v []byte, n uint64) error {
				switch num {
				case fieldKind:
					p.Kind = Kind(n)
				case fieldKey:
					p.Key = string(v)
				case fieldEnd:
					p.End = string(v)
				}
				return nil
			})
			r.Permissions = append(r.Permissions, p)
			return err
		}
		return nil
	})
	return r, err
}

func appendText(b []byte, num protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, v)
}

func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

// Record is a user or a role as it is kept.
type Record struct {
	Name  string
	Value []byte // nil: it is removed
}

// user decodes a record that is not a removal.
func (r Record) user() (*User, error) {
	u, err := decodeUser(r.Value)
	if err == nil && u.Name != r.Name {
		err = fmt.Errorf("the record is of %q", u.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("user %q: %w", r.Name, err)
	}
	return u, nil
}

// role decodes a record that is not a removal.
func (r Record) role() (*Role, error) {
	x, err := decodeRole(r.Value)
	if err == nil && x.Name != r.Name {
		err = fmt.Errorf("the record is of %q", x.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("role %q: %w", r.Name, err)
	}
	return x, nil
}
