package etcdapi

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

func request(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(testContext(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestHTTPOnTheClientPort(t *testing.T) {
	level, log := new(slog.LevelVar), new(logBuffer)
	s, addr := startServer(t, Config{LogLevel: level, Logger: slog.New(slog.NewTextHandler(log, nil))})
	base := "http://" + addr

	t.Run("HTTP-1", func(t *testing.T) {
		resp, body := request(t, "GET", base+"/version", "")
		var got map[string]string
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if got["etcdserver"] != "3.7.3" || got["etcdcluster"] != "3.7.0" || got["storage"] != "3.7.0" || len(got) != 3 {
			t.Errorf("got %s", body)
		}
		if ct := resp.Header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("content type %q", ct)
		}
		if resp, _ := request(t, "POST", base+"/version", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
			t.Errorf("POST: %s, Allow %q", resp.Status, resp.Header.Get("Allow"))
		}
	})
	t.Run("HTTP-6", func(t *testing.T) {
		if resp, body := request(t, "GET", base+"/debug/vars", ""); resp.StatusCode != 200 || !json.Valid([]byte(body)) {
			t.Errorf("%s %s", resp.Status, body)
		}
		if resp, _ := request(t, "GET", base+"/debug/pprof/", ""); resp.StatusCode != 404 {
			t.Errorf("pprof is offered: %s", resp.Status)
		}
		_, profiled := startServer(t, Config{EnablePprof: true})
		if resp, _ := request(t, "GET", "http://"+profiled+"/debug/pprof/cmdline", ""); resp.StatusCode != 200 {
			t.Errorf("pprof is not offered: %s", resp.Status)
		}
	})
	t.Run("HTTP-7", func(t *testing.T) {
		resp, _ := request(t, "OPTIONS", base+"/any", "", "Origin", "http://page.example")
		for _, h := range []string{"Access-Control-Allow-Methods", "Access-Control-Allow-Headers"} {
			if resp.Header.Get(h) == "" {
				t.Errorf("no %s", h)
			}
		}
		if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != 200 || got != "*" {
			t.Errorf("%s, origin %q", resp.Status, got)
		}
		_, strict := startServer(t, Config{CORS: []string{"http://page.example"}})
		for origin, want := range map[string]string{"http://page.example": "http://page.example", "http://other.example": ""} {
			resp, _ := request(t, "GET", "http://"+strict+"/version", "", "Origin", origin)
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("origin %s: allowed %q", origin, got)
			}
		}
	})
	t.Run("log level", func(t *testing.T) {
		if _, body := request(t, "PUT", base+"/debug/log-level", "debug\n"); !strings.Contains(body, "debug") || level.Level() != slog.LevelDebug {
			t.Errorf("level %v, answer %s", level.Level(), body)
		}
		said := strings.Count(log.String(), "level changes")
		if resp, _ := request(t, "PUT", base+"/debug/log-level", "debug"); resp.StatusCode != 200 || said != 1 || strings.Count(log.String(), "level changes") != 1 {
			t.Errorf("the same level again: %s, log %s", resp.Status, log)
		}
		resp, body := request(t, "PUT", base+"/debug/log-level", "error", "Origin", "http://page.example")
		if resp.StatusCode != 403 || level.Level() != slog.LevelDebug {
			t.Errorf("a web page changed the level to %v: %s %s", level.Level(), resp.Status, body)
		}
		if resp, _ := request(t, "PUT", base+"/debug/log-level", "loud"); resp.StatusCode != 400 || level.Level() != slog.LevelDebug {
			t.Errorf("a wrong word: %s, level %v", resp.Status, level.Level())
		}
		if _, body := request(t, "GET", base+"/debug/log-level", ""); !strings.Contains(body, `"debug"`) {
			t.Errorf("answer %s", body)
		}
	})
	t.Run("gRPC beside it", func(t *testing.T) {
		resp, err := etcdserverpb.NewMaintenanceClient(dial(t, addr)).Status(testContext(t), &etcdserverpb.StatusRequest{})
		if err != nil || resp.Version != etcdVersion || resp.Header.MemberId != s.memberID {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

func TestHealthPages(t *testing.T) {
	s, addr := startServer(t, Config{})
	base := "http://" + addr
	check := func(t *testing.T, path string, status int, want ...string) {
		t.Helper()
		resp, body := request(t, "GET", base+path, "")
		if resp.StatusCode != status {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s: no %q in %q", path, w, body)
			}
		}
	}
	healthy := func(t *testing.T) {
		check(t, "/health", 200, `{"health":"true","reason":""}`)
		check(t, "/health?serializable=true", 200, `"true"`)
		check(t, "/livez", 200, "ok")
		check(t, "/readyz", 200, "ok")
	}
	t.Run("HTTP-2 HTTP-3 HTTP-4", healthy)
	t.Run("HTTP-3 verbose and parts", func(t *testing.T) {
		check(t, "/livez?verbose", 200, "[+]serializable_read ok")
		check(t, "/livez/serializable_read", 200, "ok")
		check(t, "/livez/unknown", 404)
		check(t, "/readyz?verbose", 200, "[+]data_corruption ok", "[+]serializable_read ok", "[+]linearizable_read ok", "[+]non_learner ok")
	})
	t.Run("HTTP-2 method", func(t *testing.T) {
		if resp, _ := request(t, "POST", base+"/health", ""); resp.StatusCode != 405 {
			t.Error(resp.Status)
		}
	})
	alarm := func(t *testing.T, typ store.AlarmType) {
		t.Helper()
		a := store.Alarm{MemberID: s.memberID, Type: typ}
		if err := s.store.AlarmActivate(testContext(t), a); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := s.store.AlarmDeactivate(testContext(t), a); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("HTTP-2 HTTP-4 NOSPACE", func(t *testing.T) {
		alarm(t, store.NoSpace)
		check(t, "/health", 503, `{"health":"false","reason":"ALARM NOSPACE"}`)
		check(t, "/health?exclude=NOSPACE", 200, `"true"`)
		check(t, "/readyz", 200, "ok")
		check(t, "/livez", 200, "ok")
	})
	t.Run("HTTP-2 HTTP-4 CORRUPT", func(t *testing.T) {
		alarm(t, store.Corrupt)
		check(t, "/health", 503, "ALARM CORRUPT")
		check(t, "/health?exclude=NOSPACE", 503, "ALARM CORRUPT")
		check(t, "/readyz", 503, "[-]data_corruption failed:", "CORRUPT")
		check(t, "/readyz?exclude=data_corruption", 200, "ok")
		check(t, "/readyz/linearizable_read", 200, "ok")
		check(t, "/livez", 200, "ok")
	})
	t.Run("HTTP-2 after the alarms", healthy)
}

// TestHealthOfAFailedStore is HTTP-2 to HTTP-4 after a sync has failed.
func TestHealthOfAFailedStore(t *testing.T) {
	dir := t.TempDir()
	disk, err := simfs.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(store.Options{Dir: dir, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	_, addr := startServer(t, Config{Store: st})
	disk.SetHook(func(op simfs.Op) error {
		if op.Kind == simfs.Sync {
			return syscall.EIO
		}
		return nil
	})
	_, err = etcdserverpb.NewKVClient(dial(t, addr)).Put(testContext(t), &etcdserverpb.PutRequest{Key: []byte("a")})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("put: %v", err)
	}
	for path, want := range map[string]string{
		"/health": `"reason":"RANGE ERROR:`,
		"/livez":  "[-]serializable_read failed: ",
		"/readyz": "[-]linearizable_read failed: ",
	} {
		resp, body := request(t, "GET", "http://"+addr+path, "")
		if resp.StatusCode != 503 || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
}

// TestMetricsListener is HTTP-9: probes use a port that has nothing else.
func TestMetricsListener(t *testing.T) {
	s, _ := startServer(t, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeMetrics(l) }()
	base := "http://" + l.Addr().String()
	for path, want := range map[string]int{
		"/metrics": 200, "/health": 200, "/livez": 200, "/readyz": 200,
		"/health?exclude=NOSPACE&serializable=true": 200, "/health?serializable=false": 200,
		"/version": 404, "/v3/kv/range": 404, "/debug/vars": 404,
	} {
		if resp, body := request(t, "GET", base+path, ""); resp.StatusCode != want {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	if err := s.Stop(testContext(t)); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
