package store

import "testing"

// Leases across a restart, in the cases that etcd had no tests for until it lost
// track of what was attached. Here the restart is a power cut.
func TestEtcd6102LeaseAcrossRestart(t *testing.T) {
	const a, b = 11, 12
	revoke := func(t *testing.T, s *Store, id int64) {
		t.Helper()
		_, err := s.LeaseRevoke(bg, id)
		must(t, err)
	}
	for _, where := range []string{"log", "tree"} {
		for _, x := range []struct {
			name   string
			before func(t *testing.T, s *Store)
			after  func(t *testing.T, s *Store)
		}{
			{"attached",
				func(t *testing.T, s *Store) { putLease(t, s, "foo", "1", a) },
				func(t *testing.T, s *Store) {
					leaseKeys(t, s, a, "foo")
					revoke(t, s, a)
					wantNoKey(t, s, "foo")
				}},
			{"revoked",
				func(t *testing.T, s *Store) {
					putLease(t, s, "foo", "1", a)
					revoke(t, s, a)
				},
				func(t *testing.T, s *Store) {
					wantNoKey(t, s, "foo")
					_, err := s.LeaseRevoke(bg, a)
					wantErr(t, err, ErrLeaseNotFound)
				}},
			{"detached",
				func(t *testing.T, s *Store) {
					putLease(t, s, "foo", "1", a)
					put(t, s, "foo", "2")
				},
				func(t *testing.T, s *Store) {
					revoke(t, s, a)
					wantValue(t, s, "foo", "2")
				}},
			{"moved",
				func(t *testing.T, s *Store) {
					putLease(t, s, "foo", "1", a)
					putLease(t, s, "foo", "2", b)
				},
				func(t *testing.T, s *Store) {
					revoke(t, s, a)
					wantValue(t, s, "foo", "2")
					revoke(t, s, b)
					wantNoKey(t, s, "foo")
				}},
			{"deleted and made again",
				func(t *testing.T, s *Store) {
					putLease(t, s, "foo", "1", a)
					del(t, s, single("foo"))
					put(t, s, "foo", "2")
				},
				func(t *testing.T, s *Store) {
					revoke(t, s, a)
					wantValue(t, s, "foo", "2")
				}},
		} {
			t.Run(x.name+" in the "+where, func(t *testing.T) {
				c := newCutStore(t, 1, 1<<20)
				grant(t, c.Store, a, 300)
				grant(t, c.Store, b, 300)
				x.before(t, c.Store)
				if where == "tree" {
					must(t, c.Checkpoint(bg))
				}
				x.after(t, c.afterCut())
				must(t, c.Close())
			})
		}
	}
}
