package tools

import (
	"strings"
	"testing"
)

// etcd's proxies work in front of the server: with gRPC understood and shared
// (grpc-proxy), and with plain connections (gateway).
func TestProxies(t *testing.T) {
	for _, c := range []struct{ name, command string }{
		{"grpc-proxy", "grpc-proxy start"},
		{"gateway", "gateway start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t)
			address := freeAddress(t)
			launch(t, binary(t, "etcd"), append(strings.Fields(c.command), "--endpoints="+strings.TrimPrefix(s.url, "http://"), "--listen-addr="+address)...)
			p := &server{t: t, url: "http://" + address}
			p.waitReady()
			p.expect("OK", "put", "a", "1")
			s.expect("a | 1", "get", "a")
			watch := p.follow("watch", "--prefix", "w/", "--rev=1")
			s.ctl("put", "w/1", "x")
			watch.wait("w/1")
			lease := grant(p, 600)
			p.ctl("put", "leased", "x", "--lease="+lease)
			p.expect("lease "+lease+" keepalived with TTL(600)", "lease", "keep-alive", "--once", lease)
			p.expect("lease "+lease+" revoked", "lease", "revoke", lease)
			s.expect("", "get", "leased")
			if out := p.ctlInput("ver(\"a\") = \"1\"\n\nget a\n\n\n", "txn"); !strings.HasPrefix(out, "SUCCESS") {
				t.Errorf("txn: %s", out)
			}
			p.expect("1", "del", "a")
		})
	}
}
