package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

// listeners are the open sockets of a server. Until they are served, clients
// that connect wait.
type listeners struct {
	clients, metrics []*etcdapi.Listener
}

// listen opens all listeners, or none.
func (s *serving) listen() (*listeners, error) {
	l := new(listeners)
	for _, part := range []struct {
		urls []etcdapi.ListenURL
		to   *[]*etcdapi.Listener
		flag string
	}{{s.opts.listenClient, &l.clients, "listen-client-urls"}, {s.opts.listenMetrics, &l.metrics, "listen-metrics-urls"}} {
		if passed := s.passedFor(part.flag); len(passed) > 0 {
			*part.to = passed
			continue
		}
		for _, u := range part.urls {
			opened, err := s.listenAt(u)
			if err != nil {
				l.close()
				return nil, fmt.Errorf("--%s (from the %s): %w", part.flag, s.from.of(part.flag), listenAdvice(u, err))
			}
			*part.to = append(*part.to, opened)
		}
	}
	return l, nil
}

// listenAt opens one listener. A socket can be in the data directory, which the
// store makes only later.
func (s *serving) listenAt(u etcdapi.ListenURL) (*etcdapi.Listener, error) {
	if isSocket(u) && filepath.Clean(filepath.Dir(u.Addr)) == filepath.Clean(s.opts.dataDir) {
		if err := os.MkdirAll(s.opts.dataDir, 0o700); err != nil {
			return nil, fmt.Errorf("make the data directory for %s: %w", u, err)
		}
	}
	return etcdapi.Listen(u)
}

// listenAdvice adds what to do about a listener that could not be opened.
func listenAdvice(u etcdapi.ListenURL, err error) error {
	if !isSocket(u) {
		return withAdvice(err, "ports below 1024 need a right of their own (CAP_NET_BIND_SERVICE); choose a higher one")
	}
	dir := filepath.Dir(u.Addr)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; make the directory %s for %s (RuntimeDirectory= in a systemd unit)", err, dir, whoRuns())
	}
	return withAdvice(err, fmt.Sprintf("the directory %s must belong to %s", dir, whoRuns()))
}

func (l *listeners) close() {
	for _, open := range append(l.clients, l.metrics...) {
		open.Close()
	}
}

// serveOn serves on the listeners in the background. The channel gets the errors of
// listeners that fail.
func (s *serving) serveOn(l *listeners, background *sync.WaitGroup) <-chan error {
	failed := make(chan error, len(l.clients)+len(l.metrics))
	start := func(serve func(net.Listener) error, l *etcdapi.Listener) {
		background.Go(func() {
			if err := serve(l); err != nil {
				failed <- err
			}
		})
	}
	var addrs []net.Addr
	for _, c := range l.clients {
		addrs = append(addrs, c.Addr())
		start(s.api.Serve, c)
		s.log.Info("serving clients", "url", c.URL.String(), "from", string(s.from.of("listen-client-urls")), "address", c.Addr().String())
	}
	for _, m := range l.metrics {
		start(s.api.ServeMetrics, m)
		s.log.Info("serving metrics", "url", m.URL.String(), "from", string(s.from.of("listen-metrics-urls")), "address", m.Addr().String())
	}
	s.tellReady()
	s.watch()
	if s.ready != nil {
		s.ready(addrs)
	}
	return failed
}
