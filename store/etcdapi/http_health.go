package etcdapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/auth"
)

// healthTimeout is how long a check may take; then it has failed.
const healthTimeout = 5 * time.Second

// healthCheck is one thing that must hold for /livez or /readyz.
type healthCheck struct {
	name string
	run  func(context.Context) error
}

// checkCount are the results of one check of one page.
type checkCount struct {
	page, name    string
	healthy       atomic.Bool // the last result
	passed, fails atomic.Uint64
}

// healthChecks are the health pages. A check runs when a page is asked for and
// at no other time.
type healthChecks struct {
	s         *Server
	live      []healthCheck
	ready     []healthCheck
	counts    []*checkCount
	ok, notOK atomic.Uint64 // answers of /health
}

func newHealthChecks(s *Server) *healthChecks {
	read := healthCheck{"serializable_read", s.checkRead}
	h := &healthChecks{
		s:    s,
		live: []healthCheck{read},
		ready: []healthCheck{
			{"data_corruption", s.checkCorruption},
			read,
			{"linearizable_read", s.checkRead},
			{"non_learner", func(context.Context) error { return nil }},
		},
	}
	for _, c := range h.live {
		h.counts = append(h.counts, &checkCount{page: "livez", name: c.name})
	}
	for _, c := range h.ready {
		h.counts = append(h.counts, &checkCount{page: "readyz", name: c.name})
	}
	return h
}

func (h *healthChecks) install(mux *http.ServeMux) {
	mux.HandleFunc("/health", getOnly(h.serveHealth))
	h.installPage(mux, "livez", h.live)
	h.installPage(mux, "readyz", h.ready)
}

// installPage adds /page, and /page/check for each check alone.
func (h *healthChecks) installPage(mux *http.ServeMux, page string, checks []healthCheck) {
	serve := func(checks []healthCheck) http.HandlerFunc {
		return getOnly(func(w http.ResponseWriter, r *http.Request) { h.servePage(w, r, page, checks) })
	}
	mux.HandleFunc("/"+page, serve(checks))
	for i, c := range checks {
		mux.HandleFunc("/"+page+"/"+c.name, serve(checks[i:i+1]))
	}
}

// checkRead reads a key. On one node a linearizable read needs no more than a
// serializable one: it sees what was published (REV-7).
func (s *Server) checkRead(ctx context.Context) error {
	if s.stopping() {
		return errors.New("server is stopping")
	}
	res, err := s.store.Range(auth.Trusted(ctx), &store.RangeRequest{KeyRange: store.KeyRange{Key: []byte("health")}, Limit: 1, CountOnly: true})
	if err != nil {
		return err
	}
	res.Close()
	return nil
}

func (s *Server) checkCorruption(context.Context) error {
	for _, a := range s.store.Alarms() {
		if a.Type == store.Corrupt {
			return errors.New("alarm activated: CORRUPT")
		}
	}
	return nil
}

// serveHealth is the older page: alarms, then a read (HTTP-2).
func (h *healthChecks) serveHealth(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	reason := h.unhealthy(ctx, r.URL.Query()["exclude"])
	answer := struct {
		Health string `json:"health"`
		Reason string `json:"reason"`
	}{Health: "true", Reason: reason}
	if reason != "" {
		answer.Health = "false"
	}
	body, _ := json.Marshal(answer) // strings only: cannot fail
	if reason != "" {
		h.notOK.Add(1)
		h.s.log.Warn("the health page reports a failure", "page", "/health", "reason", reason)
		http.Error(w, string(body), http.StatusServiceUnavailable)
		return
	}
	h.ok.Add(1)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(body)
}

// unhealthy is why the store is not healthy, "" if it is.
func (h *healthChecks) unhealthy(ctx context.Context, exclude []string) string {
	for _, a := range h.s.store.Alarms() {
		name := alarmName(a.Type)
		if !slices.Contains(exclude, name) {
			return "ALARM " + name
		}
	}
	if err := h.s.checkRead(ctx); err != nil {
		return fmt.Sprintf("RANGE ERROR:%v", err)
	}
	return ""
}

// servePage runs checks and answers ok, or 503 with what failed (HTTP-3, HTTP-4).
func (h *healthChecks) servePage(w http.ResponseWriter, r *http.Request, page string, checks []healthCheck) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	query := r.URL.Query()
	var report strings.Builder
	failed := false
	for _, c := range checks {
		if slices.Contains(query["exclude"], c.name) {
			continue
		}
		err := c.run(ctx)
		h.count(page, c.name, err == nil)
		if err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.name)
	}
	if failed {
		h.s.log.Warn("a health page reports a failure", "page", "/"+page, "report", report.String())
		http.Error(w, report.String(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if query.Has("verbose") {
		fmt.Fprint(w, report.String())
	}
	fmt.Fprintln(w, "ok")
}

func (h *healthChecks) count(page, name string, healthy bool) {
	for _, c := range h.counts {
		if c.page != page || c.name != name {
			continue
		}
		c.healthy.Store(healthy)
		if healthy {
			c.passed.Add(1)
		} else {
			c.fails.Add(1)
		}
	}
}
