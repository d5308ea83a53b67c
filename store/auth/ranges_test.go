package auth

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// naive answers AUT-15 from the permissions one by one. What a set of ranges allows only
// changes at their ends, so it is enough to look at the ends within the request.
func naive(perms []Permission, want Access, key, end string) bool {
	in := func(k string) bool {
		return slices.ContainsFunc(perms, func(p Permission) bool {
			if !allows(p.Kind, want) {
				return false
			}
			switch p.End {
			case "":
				return k == p.Key
			case "\x00":
				return k >= p.Key
			default:
				return k >= p.Key && k < p.End
			}
		})
	}
	if !in(key) {
		return false
	}
	if end == "" {
		return true
	}
	var ends []string
	for _, p := range perms {
		ends = append(ends, p.Key, p.Key+"\x00", p.End)
	}
	for _, e := range ends {
		if e > key && (end == "\x00" || e < end) && !in(e) {
			return false
		}
	}
	return true
}

func TestUnionModel(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("TARN_AUTH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d (repeat with TARN_AUTH_SEED)", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	letters := []string{"a", "b", "c", "d", "e"}
	word := func() string {
		w := letters[rnd.IntN(len(letters))]
		switch rnd.IntN(4) {
		case 0:
			w += letters[rnd.IntN(len(letters))]
		case 1:
			w += "\x00"
		}
		return w
	}
	end := func(key string) string {
		switch rnd.IntN(6) {
		case 0:
			return "\x00"
		case 1, 2:
			return ""
		default:
			return word()
		}
	}
	yes := 0
	for range 3000 {
		s := withRoot(t, "user u", "role r1", "role r2", "give u r1", "give u r2")
		var perms []Permission
		for range rnd.IntN(8) {
			p := Permission{Kind: Kind(rnd.IntN(3)), Key: word()}
			p.End = end(p.Key)
			role := fmt.Sprintf("r%d", 1+rnd.IntN(2))
			u, err := s.GrantPermission(role, p)
			if err != nil {
				wantErr(t, err, ErrInvalidManagement)
				continue
			}
			s = applied(t, s, u, nil)
			perms = append(append([]Permission{}, s.roles["r1"].Permissions...), s.roles["r2"].Permissions...)
		}
		for range 20 {
			key := word()
			to := end(key)
			want := wants[rnd.IntN(2)]
			got := s.Allow(Caller{User: "u", Revision: s.Revision()}, want, []byte(key), []byte(to))
			if (got == nil) != naive(perms, want, key, to) {
				t.Fatalf("AUT-15: %q may access (%d) %q to %q: %v, the permissions say %v", perms, want, key, to, got, got != nil)
			}
			if got == nil {
				yes++
			}
		}
	}
	if yes < 1000 {
		t.Errorf("only %d requests were allowed: the test says little", yes)
	}
}

func TestUnion(t *testing.T) {
	s := withRoot(t, "user u", "role r", "role q", "give u r", "give u q",
		"allow r rw a c", "allow q rw c d", "allow r r f", "allow q w x 0", "allow r r x", "allow r r za 0")
	for _, tt := range []struct {
		name     string
		want     Access
		key, end string
		ok       bool
	}{
		{"in one", ToRead, "a", "b", true},
		{"over two roles", ToWrite, "a", "d", true},
		{"beyond", ToRead, "a", "e", false},
		{"before", ToRead, "0", "b", false},
		{"key", ToRead, "f", "", true},
		{"key as a range", ToRead, "f", "f\x00", true},
		{"more than the key", ToRead, "f", "f\x00\x00", false},
		{"wrong kind", ToWrite, "f", "", false},
		{"open", ToWrite, "xyz", "\x00", true},
		{"open, but only the first key", ToRead, "x", "\x00", false},
		{"within an open one", ToWrite, "x", "zz", true},
		{"open from later on", ToRead, "zb", "\x00", true},
		{"open before it begins", ToRead, "z", "\x00", false},
		{"upside down, in", ToRead, "b", "a", true},
		{"upside down, out", ToRead, "e", "a", false},
		{"empty, at the end", ToRead, "d", "d", false},
	} {
		t.Run("AUT-15/"+tt.name, func(t *testing.T) {
			err := s.Allow(Caller{User: "u", Revision: s.Revision()}, tt.want, []byte(tt.key), []byte(tt.end))
			if tt.ok {
				wantErr(t, err, nil)
			} else {
				wantErr(t, err, ErrPermissionDenied)
			}
		})
	}
}
