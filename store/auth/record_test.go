package auth

import (
	"bytes"
	"reflect"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	"google.golang.org/protobuf/proto"
)

// The records are those that etcd writes, byte by byte.
func TestRecordsAreEtcds(t *testing.T) {
	for _, tt := range []struct {
		name string
		msg  proto.Message
		own  any
	}{
		{"user", &authpb.User{Name: []byte("u"), Password: []byte("h"), Roles: []string{"a", "b"}, Options: &authpb.UserAddOptions{}},
			&User{Name: "u", Password: []byte("h"), Roles: []string{"a", "b"}, Options: true}},
		{"user without a password", &authpb.User{Name: []byte("u"), Options: &authpb.UserAddOptions{NoPassword: true}},
			&User{Name: "u", Options: true, NoPassword: true}},
		{"user of an old etcd", &authpb.User{Name: []byte("u"), Password: []byte("h")}, &User{Name: "u", Password: []byte("h")}},
		{"role", &authpb.Role{Name: []byte("r"), KeyPermission: []*authpb.Permission{
			{Key: []byte("k")}, {PermType: authpb.READWRITE, Key: []byte("a"), RangeEnd: []byte{0}}}},
			&Role{Name: "r", Permissions: []Permission{{Key: "k"}, {Kind: ReadWrite, Key: "a", End: "\x00"}}}},
		{"role without permissions", &authpb.Role{Name: []byte("r")}, &Role{Name: "r"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, err := proto.MarshalOptions{Deterministic: true}.Marshal(tt.msg)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			var back any
			switch x := tt.own.(type) {
			case *User:
				got = x.encode()
				back, err = decodeUser(want)
			case *Role:
				got = x.encode()
				back, err = decodeRole(want)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("encoded as %x, etcd writes %x", got, want)
			}
			if err != nil || !reflect.DeepEqual(back, tt.own) {
				t.Errorf("decoded as %+v, %v", back, err)
			}
		})
	}
}

func TestApplyRefusesForeignRecords(t *testing.T) {
	for _, u := range []*Update{
		{Users: []Record{{Name: "u", Value: []byte{0xff}}}},
		{Users: []Record{{Name: "u", Value: (&User{Name: "v"}).encode()}}},
		{Roles: []Record{{Name: "r", Value: []byte{0x0a, 9}}}},
		{Roles: []Record{{Name: "r", Value: (&Role{Name: "q"}).encode()}}},
	} {
		if _, err := New().Apply(u); err == nil {
			t.Errorf("%+v was applied", u)
		}
	}
}

// Whatever bytes there are: no panic, and what is understood is understood again.
func FuzzParseUpdate(f *testing.F) {
	f.Add((&Update{Revision: 7, Switch: SwitchOn, Users: []Record{{Name: "u"}, {Name: "v", Value: (&User{Name: "v"}).encode()}},
		Roles: []Record{{Name: "r", Value: (&Role{Name: "r"}).encode()}}}).Append(nil))
	f.Add([]byte{})
	f.Add([]byte{1, 3, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := ParseUpdate(b)
		if err != nil {
			return
		}
		again, err := ParseUpdate(u.Append(nil))
		if err != nil || !reflect.DeepEqual(u, again) {
			t.Fatalf("%+v became %+v, %v", u, again, err)
		}
		_, _ = New().Apply(u)
	})
}
