package tools

import (
	"strconv"
	"strings"
	"testing"
)

// grant makes a lease of that many seconds and returns its ID in hex.
func grant(s *server, seconds int) string {
	s.t.Helper()
	fields := strings.Fields(s.ctl("lease", "grant", strconv.Itoa(seconds)))
	if len(fields) < 2 || fields[0] != "lease" {
		s.t.Fatalf("lease grant: %v", fields)
	}
	return fields[1]
}

func TestLeaseForms(t *testing.T) {
	s := start(t)
	lease := grant(s, 600)
	s.expect("found 1 leases | "+lease, "lease", "list")
	s.ctl("put", "k1", "v", "--lease="+lease)
	s.ctl("put", "k2", "v", "--lease="+lease)
	if out := s.ctl("lease", "timetolive", lease, "--keys"); !strings.Contains(out, "granted with TTL(600s), remaining(") ||
		!strings.Contains(out, "attached keys([k1 k2])") {
		t.Errorf("timetolive: %s", out)
	}
	s.expect("lease "+lease+" keepalived with TTL(600)", "lease", "keep-alive", "--once", lease)
	s.expect("lease "+lease+" revoked", "lease", "revoke", lease)
	s.expect("", "get", "--prefix", "k")
	s.expect("found 0 leases", "lease", "list")
	s.expect("lease "+lease+" already expired", "lease", "timetolive", lease)
	s.refused("requested lease not found", "lease", "revoke", lease)
	s.refused("requested lease not found", "lease", "keep-alive", "--once", lease)
}

// A lease that is kept alive lives on, and keep-alive ends when it is revoked.
func TestLeaseKeepAlive(t *testing.T) {
	s := start(t)
	lease := grant(s, 2)
	keeper := s.follow("lease", "keep-alive", lease)
	for range 4 { // about four times the third of the time to live
		keeper.wait("lease " + lease + " keepalived with TTL(2)")
	}
	s.expect("lease "+lease+" revoked", "lease", "revoke", lease)
	keeper.wait("lease " + lease + " expired or revoked.")
}

// A lease that nobody keeps alive ends, with its keys.
func TestLeaseExpires(t *testing.T) {
	s := start(t)
	lease := grant(s, 1)
	s.ctl("put", "k", "v", "--lease="+lease)
	waitFor(t, "the key is gone", func() bool { return s.ctl("get", "k") == "" })
	s.expect("found 0 leases", "lease", "list")
}
