package auth

import (
	"context"
	"testing"
)

func TestCaller(t *testing.T) {
	ctx := context.Background()
	if c := CallerOf(ctx); !c.Anonymous() {
		t.Errorf("a context that says nothing is of %+v", c)
	}
	if c := CallerOf(WithCaller(ctx, Caller{User: "u", Revision: 3})); c.User != "u" || c.Anonymous() {
		t.Errorf("caller %+v", c)
	}
}

func TestPermit(t *testing.T) {
	s := withRoot(t, "user u", "user bare", "role r", "role q", "give u r", "allow r rw a b")
	now := s.Revision()
	allow := func(c Caller) error { return s.Allow(c, ToRead, []byte("a"), nil) }
	someone := func(name string) Caller { return Caller{User: name, Revision: now} }
	old := Caller{User: "u", Revision: now - 1}
	trusted := CallerOf(Trusted(context.Background()))
	for _, tt := range []struct {
		name   string
		caller Caller
		allow  error
		admin  error
		known  error
	}{
		{"AUT-10/nobody", Caller{}, ErrUserEmpty, ErrUserEmpty, ErrUserEmpty},
		{"AUT-15/user", someone("u"), nil, ErrPermissionDenied, nil},
		{"AUT-15/without roles", someone("bare"), ErrPermissionDenied, ErrPermissionDenied, nil},
		{"AUT-17/root", someone("root"), nil, nil, nil},
		{"AUT-14/unknown", someone("x"), ErrPermissionDenied, ErrUserNotFound, nil},
		{"AUT-13/old revision", old, ErrOldRevision, ErrPermissionDenied, nil},
		{"trusted", trusted, nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantErr(t, allow(tt.caller), tt.allow)
			wantErr(t, s.Admin(tt.caller), tt.admin)
			wantErr(t, s.Known(tt.caller), tt.known)
		})
	}
	t.Run("AUT-17/visible", func(t *testing.T) {
		wantErr(t, s.UserVisible(someone("u"), "u"), nil)
		wantErr(t, s.UserVisible(someone("u"), "bare"), ErrPermissionDenied)
		wantErr(t, s.UserVisible(someone("root"), "u"), nil)
		wantErr(t, s.RoleVisible(someone("u"), "r"), nil)
		wantErr(t, s.RoleVisible(someone("u"), "q"), ErrPermissionDenied)
		wantErr(t, s.RoleVisible(Caller{}, "r"), ErrUserEmpty)
	})
	t.Run("AUT-1", func(t *testing.T) {
		s := setup(t, s, "off")
		for _, c := range []Caller{{}, someone("x"), old} {
			wantErr(t, s.Allow(c, ToWrite, []byte("zz"), nil), nil)
			wantErr(t, s.Admin(c), nil)
		}
	})
	t.Run("a role that is gone allows nothing", func(t *testing.T) {
		next, err := s.Apply(&Update{Revision: now, Roles: []Record{{Name: "r"}}})
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, next.Allow(someone("u"), ToRead, []byte("a"), nil), ErrPermissionDenied)
	})
}
