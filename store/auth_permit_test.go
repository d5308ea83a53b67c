package store

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tarn-kv/tarn/store/auth"
)

var nobody = context.Background()

// as is a context for a user who was just identified.
func as(s *Store, user string) context.Context {
	return auth.WithCaller(nobody, auth.Caller{User: user, Revision: s.Auth().Revision()})
}

func TestPermitTxn(t *testing.T) {
	s := guarded(t)
	for _, id := range []int64{1, 2, 3} {
		grant(t, s, id, 100)
	}
	put := func(key string, lease int64) Op { return Op{Put: &PutRequest{Key: []byte(key), Lease: lease}} }
	res, err := s.Txn(bg, &TxnRequest{Success: []Op{put("m1", 1), put("w1", 2), put("z1", 3), put("a1", 0)}})
	must(t, err)
	res.Close()
	compare := func(key string) []Compare { return []Compare{{KeyRange: single(key), Int: 1}} }
	withPrev := func(key string) Op { return Op{Put: &PutRequest{Key: []byte(key), PrevKV: true}} }
	nested := func(op Op) Op { return Op{Txn: &TxnRequest{Success: []Op{op}}} }
	for _, tt := range []struct {
		name string
		req  TxnRequest
		ok   bool
	}{
		{"read", TxnRequest{Success: []Op{rangeOp(between("a", "c"))}}, true},
		{"read too much", TxnRequest{Success: []Op{rangeOp(between("a", "d"))}}, false},
		{"read what may be written only", TxnRequest{Success: []Op{rangeOp(single("w1"))}}, false},
		{"put", TxnRequest{Success: []Op{putOp("w1", "")}}, true},
		{"put what may be read only", TxnRequest{Success: []Op{putOp("a1", "")}}, false},
		{"put in the branch not taken", TxnRequest{Success: []Op{putOp("w1", "")}, Failure: []Op{putOp("a1", "")}}, false},
		{"read in the branch not taken", TxnRequest{Success: []Op{rangeOp(single("a1"))}, Failure: []Op{rangeOp(single("secret"))}}, false},
		{"nested", TxnRequest{Success: []Op{nested(rangeOp(single("secret")))}}, false},
		{"nested twice", TxnRequest{Success: []Op{nested(nested(putOp("secret", "")))}}, false},
		{"compare", TxnRequest{Compare: compare("a1")}, true},
		{"compare without reading", TxnRequest{Compare: compare("w1")}, false},
		{"previous value", TxnRequest{Success: []Op{withPrev("m1")}}, true},
		{"previous value without reading", TxnRequest{Success: []Op{withPrev("w1")}}, false},
		{"delete", TxnRequest{Success: []Op{deleteOp(between("w", "x"))}}, true},
		{"delete too much", TxnRequest{Success: []Op{deleteOp(between("w", "x\x00"))}}, false},
		{"delete with previous values", TxnRequest{Success: []Op{{Delete: &DeleteRequest{KeyRange: single("w1"), PrevKV: true}}}}, false},
		{"lease of own keys", TxnRequest{Success: []Op{put("m2", 1)}}, true},
		{"lease without keys", TxnRequest{Success: []Op{put("w2", 1)}}, true},
		{"lease of a foreign key", TxnRequest{Success: []Op{put("m2", 3)}}, false},
	} {
		t.Run("AUT-16/"+tt.name, func(t *testing.T) {
			for name, ctx := range map[string]context.Context{"u": as(s, "u"), "root": as(s, "root"), "the server": bg} {
				res, err := s.Txn(ctx, &tt.req)
				if err == nil {
					res.Close()
				}
				if ok := tt.ok || name != "u"; ok != (err == nil) || !ok && !errors.Is(err, auth.ErrPermissionDenied) {
					t.Errorf("%s: %v", name, err)
				}
			}
			_, err := s.Txn(nobody, &tt.req)
			wantErr(t, err, auth.ErrUserEmpty)
		})
	}
	t.Run("AUT-16/order", func(t *testing.T) {
		_, err := s.Txn(as(s, "u"), &TxnRequest{Success: []Op{put("secret", 99)}})
		wantErr(t, err, auth.ErrPermissionDenied) // before the lease that is not there
		_, err = s.Range(as(s, "u"), &RangeRequest{KeyRange: single("secret"), Revision: 999})
		wantErr(t, err, auth.ErrPermissionDenied) // RNG-18
	})
}

func TestPermitLeases(t *testing.T) {
	s := guarded(t)
	grant(t, s, 1, 100)
	grant(t, s, 2, 100)
	res, err := s.Txn(bg, &TxnRequest{Success: []Op{
		{Put: &PutRequest{Key: []byte("m1"), Lease: 1}}, {Put: &PutRequest{Key: []byte("a1"), Lease: 2}}}})
	must(t, err)
	res.Close()
	u := as(s, "u")
	must(t, s.PermitKeepAlive(u, 1))
	must(t, s.PermitKeepAlive(u, 77))
	wantErr(t, s.PermitKeepAlive(u, 2), auth.ErrPermissionDenied)
	must(t, s.PermitLeaseList(u))
	must(t, s.PermitLeaseKeys(u, []string{"a1", "m1"}))
	wantErr(t, s.PermitLeaseKeys(u, []string{"a1", "w1"}), auth.ErrPermissionDenied)
	for _, err := range []error{s.PermitKeepAlive(nobody, 77), s.PermitLeaseList(nobody), s.PermitLeaseKeys(nobody, nil)} {
		wantErr(t, err, auth.ErrUserEmpty)
	}
	_, err = s.LeaseRevoke(u, 2)
	wantErr(t, err, auth.ErrPermissionDenied)
	_, err = s.LeaseRevoke(nobody, 1)
	wantErr(t, err, auth.ErrUserEmpty)
	_, err = s.LeaseRevoke(u, 1)
	must(t, err)
	_, err = s.Txn(bg, &TxnRequest{Success: []Op{{Put: &PutRequest{Key: []byte("secret"), Lease: 2}}}})
	must(t, err)
	wantErr(t, s.PermitLeaseList(u), auth.ErrPermissionDenied)
}

func TestChangeAuthPermission(t *testing.T) {
	s := guarded(t)
	wantErr(t, s.ChangeAuth(nobody, addUser("x")), auth.ErrUserEmpty)
	wantErr(t, s.ChangeAuth(as(s, "u"), addUser("x")), auth.ErrPermissionDenied)
	wantErr(t, s.ChangeAuth(as(s, "nobody"), addUser("x")), auth.ErrUserNotFound)
	must(t, s.ChangeAuth(as(s, "root"), addUser("x")))
}

// TestRevocationHides: a reader that ends after a revocation was acknowledged never has
// what was written after that.
func TestRevocationHides(t *testing.T) {
	s := guarded(t)
	const rounds = 60
	for range rounds {
		changeAuth(t, s, giveRole("u", "r"))
		c := as(s, "u")
		res, err := s.Txn(bg, &TxnRequest{Success: []Op{deleteOp(single("a"))}})
		must(t, err)
		res.Close()
		var readers sync.WaitGroup
		begun := make(chan struct{}, 4)
		for range 4 {
			readers.Go(func() {
				for first := true; ; first = false {
					res, err := s.Range(c, &RangeRequest{KeyRange: single("a")})
					if first {
						begun <- struct{}{}
					}
					if err != nil {
						return
					}
					if len(res.Items) > 0 {
						t.Error("a revoked permission showed what was written after the revocation")
					}
					res.Close()
				}
			})
		}
		for range 4 {
			<-begun
		}
		// Both in one batch if it so happens: then they become visible together.
		var writers sync.WaitGroup
		revoked := make(chan struct{})
		writers.Go(func() {
			err := s.ChangeAuth(bg, func(st *auth.State) (*auth.Update, error) {
				defer close(revoked) // Store.mu is held until it is applied
				return st.RevokeRole("u", "r")
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-revoked
		res, err = s.Txn(bg, &TxnRequest{Success: []Op{putOp("a", "secret")}})
		must(t, err)
		res.Close()
		writers.Wait()
		readers.Wait()
	}
}

func TestWatchPermit(t *testing.T) {
	s := guarded(t)
	w := watchStream(t, s)
	keys := between("a", "d")
	_, err := w.Create(WatchRequest{KeyRange: keys, Permit: func() error { return s.PermitRead(as(s, "u"), keys) }})
	wantErr(t, err, auth.ErrPermissionDenied)
	if _, ok, _ := w.Next(); ok {
		t.Error("WCH-18: a message is queued")
	}
	_, err = w.Create(WatchRequest{KeyRange: keys, Permit: func() error { return s.PermitRead(as(s, "root"), keys) }})
	must(t, err)
}
