package etcdapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"
)

const (
	httpHeaderTimeout = 10 * time.Second
	httpIdleTimeout   = 2 * time.Minute
)

func (s *Server) newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ConnContext:       withConn,
		ReadHeaderTimeout: httpHeaderTimeout,
		IdleTimeout:       httpIdleTimeout,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// clientMux has the pages of a client listener.
func (s *Server) clientMux() http.Handler {
	mux := http.NewServeMux()
	s.addMonitoring(mux)
	mux.HandleFunc("/version", getOnly(serveVersion))
	mux.Handle("/v3/", s.gateway)
	mux.Handle("/v3beta/", s.gateway)
	mux.Handle("/debug/vars", expvar.Handler())
	mux.HandleFunc(PrefixesPath, getOnly(s.servePrefixes))
	if s.cfg.LogLevel != nil {
		mux.HandleFunc("/debug/log-level", s.serveLogLevel)
	}
	if s.cfg.EnablePprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return s.crossOrigin(mux)
}

// addMonitoring adds the pages that a metrics listener has too.
func (s *Server) addMonitoring(mux *http.ServeMux) {
	mux.Handle("/metrics", s.metrics)
	s.health.install(mux)
}

// ServeMetrics serves only metrics and health on l until Stop is called, then
// returns nil. TLS is spoken as by Serve.
func (s *Server) ServeMetrics(l net.Listener) error {
	config, err := s.tlsFor(l)
	if err != nil {
		l.Close()
		return err
	}
	mux := http.NewServeMux()
	s.addMonitoring(mux)
	srv := s.newHTTPServer(mux)
	if !s.addMetricsServer(srv) {
		l.Close()
		return nil
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	if err := srv.Serve(l); !s.stopping() {
		return fmt.Errorf("etcdapi: serve metrics on %v: %w", l.Addr(), err)
	}
	return nil
}

func (s *Server) addMetricsServer(srv *http.Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping() {
		return false
	}
	s.metricSrvs = append(s.metricSrvs, srv)
	return true
}

// stopHTTP answers the HTTP requests in flight, for stopGrace at most.
func (s *Server) stopHTTP(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	s.mu.Lock()
	servers := append(slices.Clone(s.metricSrvs), s.http)
	s.mu.Unlock()
	for _, srv := range servers {
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
	}
}

// getOnly refuses methods other than GET and HEAD with 405.
func getOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		h(w, r)
	}
}

func serveVersion(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"etcdserver":%q,"etcdcluster":%q,"storage":%q}`, etcdVersion, etcdClusterVersion, etcdStorageVersion)
}

// serveLogLevel shows the log level, and changes it by PUT of one of the words
// debug, info, warn, error. With access control that is for the role root.
func (s *Server) serveLogLevel(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPut:
		if !s.mayChange(r) {
			http.Error(w, refusedPage, http.StatusForbidden)
			return
		}
		if err := s.adminPage(r); err != nil {
			writeError(w, err)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		var level slog.Level
		if err == nil {
			err = level.UnmarshalText([]byte(strings.TrimSpace(string(body))))
		}
		if err != nil {
			http.Error(w, "unknown log level; send debug, info, warn or error", http.StatusBadRequest)
			return
		}
		if from := s.cfg.LogLevel.Level(); from != level {
			s.log.Warn("the log level changes", "from", from, "to", level, "remote", r.RemoteAddr)
			s.cfg.LogLevel.Set(level)
		}
	default:
		w.Header().Set("Allow", "GET, PUT")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{"level": strings.ToLower(s.cfg.LogLevel.Level().String())})
}

// refusedPage is the answer where mayChange is false.
const refusedPage = "requests from web pages are refused; allow the page's origin by name"

// mayChange is false for requests that a browser sends for a page whose origin is
// not allowed by name. Without client certificates any page could otherwise
// write to a store on the machine it is looked at. Every page that does more than
// show something asks it.
func (s *Server) mayChange(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || slices.Contains(s.cfg.CORS, origin)
}

// crossOrigin answers OPTIONS and lets browsers read the pages (HTTP-7).
func (s *Server) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := s.allowedOrigin(r.Header.Get("Origin")); origin != "" {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS, POST")
			w.Header().Set("Access-Control-Allow-Headers", "accept, content-type, authorization")
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusOK)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) allowedOrigin(origin string) string {
	switch {
	case slices.Contains(s.cfg.CORS, "*"):
		return "*"
	case slices.Contains(s.cfg.CORS, origin):
		return origin
	default:
		return ""
	}
}
