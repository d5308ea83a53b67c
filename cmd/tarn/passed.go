package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/systemd"
)

// Names that the sockets of systemd have (FileDescriptorName=).
const (
	passedClient  = "client"
	passedMetrics = "metrics"
)

// fromSystemd is the origin of addresses that come with sockets.
func fromSystemd(name string) source { return source(fmt.Sprintf("systemd socket %q", name)) }

// usePassed lets the sockets that systemd passed take the place of the URLs to listen at, so
// that everything that looks at these sees what is served.
func (s *serving) usePassed(sockets []systemd.Socket) {
	s.from = maps.Clone(s.from)
	if s.from == nil {
		s.from = sources{}
	}
	for _, part := range []struct {
		name, flag string
		urls       *[]etcdapi.ListenURL
		scheme     string
	}{
		{passedClient, "listen-client-urls", &s.opts.listenClient, s.opts.tls.scheme()},
		// Health and metrics are for this machine's agents, which have no certificate.
		{passedMetrics, "listen-metrics-urls", &s.opts.listenMetrics, "http"},
	} {
		var urls []etcdapi.ListenURL
		for _, passed := range sockets {
			if passed.Name == part.name {
				u := passedURL(passed.Addr(), part.scheme)
				urls = append(urls, u)
				s.passed = append(s.passed, passedSocket{part.flag, &etcdapi.Listener{Listener: passed.Listener, URL: u}})
			}
		}
		if len(urls) == 0 {
			continue
		}
		level, before := slog.LevelInfo, s.from.of(part.flag)
		if before != fromDefault {
			level = slog.LevelWarn // somebody wanted something else
		}
		s.log.Log(context.Background(), level, "sockets that systemd passed take the place of a setting",
			"setting", part.flag, "from", string(before), "value", urlTexts(*part.urls), "instead", urlTexts(urls))
		*part.urls = urls
		s.from[part.flag] = fromSystemd(part.name)
	}
}

// passedSocket is a socket of systemd and the setting in whose place it is.
type passedSocket struct {
	flag     string
	listener *etcdapi.Listener
}

// passedURL is where clients reach a socket. On unix sockets nobody listens in.
func passedURL(addr net.Addr, scheme string) etcdapi.ListenURL {
	if addr.Network() == "unix" {
		scheme = "unix"
	}
	return etcdapi.ListenURL{Scheme: scheme, Addr: addr.String()}
}

// scheme is that of TCP sockets which come without a URL: TLS is spoken as soon as it is set up.
// Half a setup is found by contradiction then.
func (o *tlsOptions) scheme() string {
	if o.certFile != "" || o.keyFile != "" || o.trustedCAFile != "" || o.clientCertAuth {
		return "https"
	}
	return "http"
}

// passedFor are the sockets in the place of a setting.
func (s *serving) passedFor(flag string) []*etcdapi.Listener {
	var list []*etcdapi.Listener
	for _, p := range s.passed {
		if p.flag == flag {
			list = append(list, p.listener)
		}
	}
	return list
}
