package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/store/vfs"
)

// syncBuffer is a log that is written and read at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a serving in this process.
type running struct {
	*serving
	url  string // of the first client listener
	log  *syncBuffer
	hup  chan os.Signal
	stop context.CancelFunc
	done chan error
}

// testOptions are the defaults with a directory of the test's own and any free port.
func testOptions(t *testing.T) serveOptions {
	o := defaultServeOptions()
	o.dataDir = filepath.Join(t.TempDir(), "data")
	o.listenClient = mustURLs(t, "http://127.0.0.1:0")
	o.toleratedSettings = tolerated{}
	return o
}

func mustURLs(t *testing.T, text string) []etcdapi.ListenURL {
	t.Helper()
	list, err := parseURLs(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// start runs a server until the test ends, or until it is stopped.
func start(t *testing.T, o serveOptions, from sources, change ...func(*serving)) *running {
	t.Helper()
	log := &syncBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{serving: newServing(o, from, log), log: log, hup: make(chan os.Signal), stop: cancel, done: make(chan error, 1)}
	ready := make(chan []net.Addr, 1)
	r.ready = func(addrs []net.Addr) { ready <- addrs }
	for _, c := range change {
		c(r.serving)
	}
	go func() { r.done <- r.run(ctx, r.hup) }()
	t.Cleanup(func() {
		r.end(t)
		if t.Failed() {
			t.Logf("log of the server:\n%s", log)
		}
	})
	select {
	case addrs := <-ready:
		u := o.listenClient[0]
		r.url = u.Scheme + "://" + addrs[0].String()
	case err := <-r.done:
		r.done <- err
		t.Fatalf("the server did not start: %v", err)
	}
	return r
}

// end stops the server and returns why it ended.
func (r *running) end(t *testing.T) error {
	t.Helper()
	r.stop()
	err := <-r.done
	r.done <- err
	return err
}

func (r *running) client(t *testing.T) *client {
	t.Helper()
	o := clientOptions{endpoint: mustURLs(t, r.url)[0]}
	c, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func put(t *testing.T, c *client, key, value string) error {
	t.Helper()
	_, err := etcdserverpb.NewKVClient(c).Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value)})
	return err
}

func get(t *testing.T, c *client, key string) string {
	t.Helper()
	r, err := etcdserverpb.NewKVClient(c).Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte(key)})
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("get %s: %v, %v", key, r, err)
	}
	return string(r.Kvs[0].Value)
}

// watchAll opens a watch on every key and waits until the server has it.
func watchAll(t *testing.T, c *client) etcdserverpb.Watch_WatchClient {
	t.Helper()
	w, err := etcdserverpb.NewWatchClient(c).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = w.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}}}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := w.Recv(); err != nil || !resp.Created {
		t.Fatalf("create a watch: %v, %v", resp, err)
	}
	return w
}

func TestServeStopRestart(t *testing.T) {
	o := testOptions(t)
	r := start(t, o, nil)
	c := r.client(t)
	if err := put(t, c, "lake", "tarn"); err != nil {
		t.Fatal(err)
	}
	w := watchAll(t, c)

	code, _, errs := tarn(t, nil, "check", o.dataDir)
	if code != exitNotChecked || !strings.Contains(errs, "in use") {
		t.Errorf("check beside a server: exit code %d: %s", code, errs)
	}

	if err := r.end(t); err != nil {
		t.Fatalf("stop with an open watch: %v", err)
	}
	if _, err := w.Recv(); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("V-18: the open watch ended with %v, want UNAVAILABLE", err)
	}

	code, out, errs := tarn(t, nil, "check", o.dataDir)
	if code != exitOK || !strings.HasPrefix(out, "OK\n") {
		t.Errorf("check after a clean stop: exit code %d: %s%s", code, out, errs)
	}

	again := start(t, o, nil)
	if v := get(t, again.client(t), "lake"); v != "tarn" {
		t.Errorf("after a restart the value is %q", v)
	}
}

func TestServeSecondServer(t *testing.T) {
	o := testOptions(t)
	start(t, o, nil)
	code, _, errs := tarn(t, nil, "serve", "--data-dir="+o.dataDir, "--listen-client-urls=http://127.0.0.1:0")
	if code != exitInUse || !strings.Contains(errs, o.dataDir) || !strings.Contains(errs, "in use") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestServeAddressTaken(t *testing.T) {
	r := start(t, testOptions(t), nil)
	code, _, errs := tarn(t, []string{"TARN_LISTEN_CLIENT_URLS=" + r.url}, "serve", "--data-dir="+filepath.Join(t.TempDir(), "d"))
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"--listen-client-urls", "TARN_LISTEN_CLIENT_URLS", r.url, "address already in use"} {
		if !strings.Contains(errs, want) {
			t.Errorf("the message lacks %q: %s", want, errs)
		}
	}
}

func TestServeExpectedStore(t *testing.T) {
	o := testOptions(t)
	r := start(t, o, nil)
	id := r.store.ID()
	r.end(t)

	o.storeID = id
	start(t, o, nil).end(t)

	empty := filepath.Join(t.TempDir(), "empty")
	for _, tt := range []struct{ name, dir, id string }{
		{"another store", o.dataDir, "00000000000000000000000000000001"},
		{"nothing there", empty, id},
	} {
		code, _, errs := tarn(t, nil, "serve", "--listen-client-urls=http://127.0.0.1:0", "--data-dir="+tt.dir, "--store-id="+tt.id)
		if code != exitRefused || !strings.Contains(errs, tt.id) || !strings.Contains(errs, "--store-id") {
			t.Errorf("%s: exit code %d: %s", tt.name, code, errs)
		}
	}
	if files, err := filepath.Glob(filepath.Join(empty, "*.db")); err != nil || len(files) > 0 {
		t.Errorf("a refused start made a store: %v, %v", files, err)
	}
}

func TestServeDatasetNotMounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	code, _, errs := tarn(t, nil, "serve", "--dataset=no-such-pool/tarn", "--data-dir="+dir)
	if code != exitRefused || !strings.Contains(errs, "no-such-pool/tarn") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused start made the directory")
	}
}

// failingFS is the real file system until it is told to break.
type failingFS struct {
	vfs.FS
	broken chan struct{}
}

type failingFile struct {
	vfs.File
	fs *failingFS
}

var errDisk = errors.New("the disk is gone")

func (f *failingFS) Create(name string) (vfs.File, error) { return f.wrap(f.FS.Create(name)) }
func (f *failingFS) Open(name string) (vfs.File, error)   { return f.wrap(f.FS.Open(name)) }

func (f *failingFS) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &failingFile{file, f}, nil
}

func (f *failingFile) Sync() error {
	select {
	case <-f.fs.broken:
		return errDisk
	default:
		return f.File.Sync()
	}
}

func TestServeStoreFails(t *testing.T) {
	fs := &failingFS{FS: vfs.OS, broken: make(chan struct{})}
	r := start(t, testOptions(t), nil, func(s *serving) {
		s.open = func(o store.Options) (*store.Store, error) {
			o.FS = fs
			return store.Open(o)
		}
	})
	c := r.client(t)
	watchAll(t, c)
	close(fs.broken)
	if err := put(t, c, "a", "b"); err == nil {
		t.Error("a write was acknowledged without a sync")
	}
	err := <-r.done // by itself: nobody stops it
	r.done <- err
	if code := exitCode(err); code != exitStoreFailed || !errors.Is(err, errDisk) {
		t.Errorf("exit code %d: %v", code, err)
	}
}

func TestStatus(t *testing.T) {
	r := start(t, testOptions(t), nil)
	c := r.client(t)
	if err := put(t, c, "a", "b"); err != nil {
		t.Fatal(err)
	}
	watchAll(t, c)

	code, out, errs := tarn(t, []string{"TARN_ENDPOINT=" + r.url}, "status", "--output=json")
	var s statusReport
	if err := json.Unmarshal([]byte(out), &s); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if s.Revision != 2 || s.Watchers == nil || *s.Watchers != 1 || s.Keys == nil || *s.Keys != 1 ||
		s.QuotaBytes != store.DefaultQuota || s.Name != "default" || s.Endpoint != r.url {
		t.Errorf("status: %s", out)
	}
	if want := currentVersion(buildInfo()).Etcd; want != "" && s.Version != want {
		t.Errorf("the server says etcd %s, tarn version says %s", s.Version, want)
	}

	code, out, _ = tarn(t, nil, "status", "--endpoint="+r.url)
	for _, want := range []string{"revision          2\n", "never compacted", "watchers          1, 0 slow", "alarms            none"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit code %d, the page lacks %q:\n%s", code, want, out)
		}
	}

	_, err := etcdserverpb.NewMaintenanceClient(c).Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: 7, Alarm: etcdserverpb.AlarmType_CORRUPT})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs = tarn(t, nil, "status", "--endpoint="+r.url)
	if code != exitAlarm || !strings.Contains(out, "ALARM             CORRUPT: writes are refused") || errs != "" {
		t.Errorf("with an alarm: exit code %d:\n%s%s", code, out, errs)
	}
}

func TestAlarmAdvice(t *testing.T) {
	for _, tt := range []struct {
		name         string
		inUse, quota int64
		want         string
	}{
		{"quota", 96, 100, "because the quota is used up"},
		{"disk", 10, 100, "the file system of the data directory is nearly full"},
		{"disk, no quota", 10, -1, "the file system of the data directory is nearly full"},
	} {
		r := statusReport{InUseBytes: tt.inUse, QuotaBytes: tt.quota, Alarms: []string{"NOSPACE"}}
		if page := r.page(); !strings.Contains(page, tt.want) {
			t.Errorf("%s: the page lacks %q:\n%s", tt.name, tt.want, page)
		}
	}
}

func TestStatusNobodyThere(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	code, _, errs := tarn(t, nil, "status", "--endpoint=unix://"+socket)
	if code != exitFailed || !strings.Contains(errs, "no server is reachable there") || !strings.Contains(errs, socket) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestServeListeners(t *testing.T) {
	o := testOptions(t)
	dir := t.TempDir()
	o.listenClient = mustURLs(t, "unix://"+filepath.Join(dir, "a.sock")+",unix://"+filepath.Join(dir, "b.sock"))
	o.listenMetrics = mustURLs(t, "unix://"+filepath.Join(dir, "m.sock"))
	start(t, o, nil)
	for _, name := range []string{"a.sock", "b.sock"} {
		if code, _, errs := tarn(t, nil, "status", "--endpoint=unix://"+filepath.Join(dir, name)); code != exitOK {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
	c, err := (&clientOptions{endpoint: o.listenMetrics[0]}).dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if m := c.metrics(t.Context()); m["etcd_debugging_mvcc_current_revision"] != 1 {
		t.Errorf("the metrics listener tells %d metrics without the revision", len(m))
	}
	resp, err := c.pages.Get(c.pageURL + "/version")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("the metrics listener must have nothing but metrics and health: %v, %v", resp, err)
	}
}

func TestLogLevelReload(t *testing.T) {
	o := testOptions(t)
	o.configFile = writeFile(t, "tarn.yaml", "log-level: warn\n")
	r := start(t, o, sources{})
	r.hup <- syscall.SIGHUP
	r.hup <- syscall.SIGHUP // taken only after the first one is done
	r.hup <- syscall.SIGHUP
	if l := levelName(r.level.Level()); l != "warn" {
		t.Errorf("after SIGHUP the level is %s", l)
	}
	if n := strings.Count(r.log.String(), "SIGHUP"); n != 1 {
		t.Errorf("the same level again is told: %s", r.log)
	}
	if err := os.WriteFile(o.configFile, []byte("log-level: debug\nnmae: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.hup <- syscall.SIGHUP
	r.hup <- syscall.SIGHUP
	if l := levelName(r.level.Level()); l != "warn" || !strings.Contains(r.log.String(), "did you mean") {
		t.Errorf("a file that a start refuses set the level to %s", l)
	}
}

func TestLogLevelReloadOverridden(t *testing.T) {
	o := testOptions(t)
	o.configFile = writeFile(t, "tarn.yaml", "log-level: error\n")
	o.logLevel = slog.LevelInfo
	var log syncBuffer
	s := newServing(o, sources{"log-level": fromEnv("log-level")}, &log)
	s.reloadLogLevel()
	if text := log.String(); !strings.Contains(text, "TARN_LOG_LEVEL") || strings.Contains(text, "ERROR") || s.level.Level() != slog.LevelInfo {
		t.Errorf("got %s, level %v", text, s.level.Level())
	}
	s.opts.configFile = ""
	s.reloadLogLevel()
	if text := log.String(); !strings.Contains(text, "no configuration file") || strings.Contains(text, "ERROR") {
		t.Errorf("got %s", text)
	}
}

func TestServeWarnings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*serveOptions)
		want   string
	}{
		{"exposed", func(o *serveOptions) { o.listenClient = mustURLs(t, "http://0.0.0.0:2379") }, "ANYONE WHO REACHES"},
		{"log may be missing", func(o *serveOptions) { o.allowMissingLog = true }, "--allow-missing-log"},
		{"exposed with TLS", func(o *serveOptions) { o.listenClient = mustURLs(t, "https://0.0.0.0:2379") }, "need no certificate"},
		{"certificate without use", func(o *serveOptions) { o.tls.certFile = "x" }, "served without TLS"},
		{"ignored", func(o *serveOptions) { o.toleratedSettings["snapshot-count"] = true }, "snapshot-count"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			quiet, log := &syncBuffer{}, &syncBuffer{}
			o := testOptions(t)
			warn := func(to *syncBuffer) {
				s := newServing(o, nil, to)
				s.sayWhatIsOdd()
				s.warnExposed(false)
			}
			warn(quiet)
			tt.change(&o)
			warn(log)
			if !strings.Contains(log.String(), tt.want) || strings.Contains(quiet.String(), tt.want) {
				t.Errorf("log %q, and without a reason %q", log, quiet)
			}
		})
	}
}
