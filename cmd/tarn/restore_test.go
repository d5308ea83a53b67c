package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/tarn-kv/tarn/store"
)

// snapshotWorlds runs a test on pretended ZFS and on file copies. Each gets a data directory with a
// store that is stopped.
func snapshotWorlds(t *testing.T, test func(t *testing.T, dir string, flags []string)) {
	t.Run("dataset", func(t *testing.T) {
		w := newWorld(t)
		newStore(t, w.dir)
		test(t, w.dir, w.flags)
	})
	t.Run("copies", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		newStore(t, dir)
		test(t, dir, []string{"--data-dir=" + dir, "--copies"})
	})
}

// serveDir starts a server on a directory, at an address of an earlier one if url is not "".
func serveDir(t *testing.T, dir, url string) *running {
	t.Helper()
	o := testOptions(t)
	o.dataDir = dir
	if url != "" {
		o.listenClient = mustURLs(t, url)
	}
	return start(t, o, nil)
}

// createSnapshot makes a snapshot and returns its name.
func createSnapshot(t *testing.T, flags []string, args ...string) string {
	t.Helper()
	out, _ := snapshotCommand(t, 0, flags, append([]string{"create"}, args...)...)
	return strings.TrimSpace(out)
}

func restore(t *testing.T, want int, flags []string, args ...string) (stdout, stderr string) {
	t.Helper()
	args = append([]string{"restore"}, args...)
	code, stdout, stderr := tarn(t, nil, append(args, flags...)...)
	if code != want {
		t.Fatalf("tarn %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout, stderr
}

// reflector keeps a copy of all keys, as a client of the API server's kind does: it lists, watches from
// there on, and lists again when it is told that it must.
type reflector struct {
	c       *client
	keys    map[string]string
	rev     int64 // of the newest change or list
	lists   int
	told    []int64 // compact revisions with which watches were cancelled
	ordered bool    // revisions have only risen
}

func newReflector(c *client) *reflector {
	return &reflector{c: c, keys: map[string]string{}, ordered: true}
}

func (r *reflector) saw(rev int64) {
	r.ordered = r.ordered && rev >= r.rev
	r.rev = rev
}

func (r *reflector) list(t *testing.T) {
	t.Helper()
	resp, err := etcdserverpb.NewKVClient(r.c).Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	clear(r.keys)
	for _, kv := range resp.Kvs {
		r.keys[string(kv.Key)] = string(kv.Value)
	}
	r.saw(resp.Header.Revision)
	r.lists++
}

// follow watches until the key is there.
func (r *reflector) follow(t *testing.T, key string) {
	t.Helper()
	for {
		if _, ok := r.keys[key]; ok {
			return
		}
		w, err := etcdserverpb.NewWatchClient(r.c).Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = w.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: r.rev + 1}}})
		if err != nil {
			t.Fatal(err)
		}
		r.events(t, w, key)
	}
}

func (r *reflector) events(t *testing.T, w etcdserverpb.Watch_WatchClient, key string) {
	t.Helper()
	defer w.CloseSend()
	for {
		resp, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if resp.Canceled {
			r.told = append(r.told, resp.CompactRevision)
			r.list(t)
			return
		}
		for _, e := range resp.Events {
			r.saw(e.Kv.ModRevision)
			if e.Type == mvccpb.Event_DELETE {
				delete(r.keys, string(e.Kv.Key))
			} else {
				r.keys[string(e.Kv.Key)] = string(e.Kv.Value)
			}
		}
		if _, ok := r.keys[key]; ok {
			return
		}
	}
}

// TestRestoreUnderClients: the server goes back to a snapshot, and a client that watched before finds
// what is there, without ghosts, by what the API tells it. Then the restore is undone.
func TestRestoreUnderClients(t *testing.T) { snapshotWorlds(t, testRestoreUnderClients) }

func testRestoreUnderClients(t *testing.T, dir string, flags []string) {
	s := serveDir(t, dir, "")
	c := s.client(t)
	kv := etcdserverpb.NewKVClient(c)
	name := createSnapshot(t, flags, "--endpoint="+s.url)
	r := newReflector(c)
	r.list(t)
	before := maps.Clone(r.keys)
	for _, key := range []string{"ghost", "/registry/pods/default/p1", "last"} {
		if err := put(t, c, key, "after"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kv.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte("/registry/pods/default/p0")}); err != nil {
		t.Fatal(err)
	}
	r.follow(t, "last")
	handedOut := r.rev
	_, errs := restore(t, exitRestoreInUse, flags, name)
	if !strings.Contains(errs, "stop the server") {
		t.Errorf("with a server running: %s", errs)
	}
	s.end(t)

	out, _ := restore(t, 0, flags, name, "--output=json")
	var v restoreVerdict
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	onZFS := !slices.Contains(flags, "--copies")
	if v.Snapshot != name || v.Keys != int64(len(before)) || v.Revision <= handedOut || v.Aside == "" || (v.SafetySnapshot != "") != onZFS {
		t.Errorf("%+v", v)
	}
	s = serveDir(t, dir, s.url)
	if err := put(t, c, "news", "x"); err != nil {
		t.Fatal(err)
	}
	r.follow(t, "news")
	before["news"] = "x"
	if !maps.Equal(r.keys, before) || !r.ordered || r.lists != 2 || !slices.Equal(r.told, []int64{v.Revision}) {
		t.Errorf("the client has %v\ninstead of %v; %d lists, told %v, revisions rise %v", r.keys, before, r.lists, r.told, r.ordered)
	}
	s.end(t)

	restore(t, 0, flags, v.Aside)
	serveDir(t, dir, s.url)
	r.list(t)
	if r.keys["ghost"] != "after" || r.keys["news"] != "" || !r.ordered {
		t.Errorf("after the restore was undone: %v, revisions rise %v", r.keys, r.ordered)
	}
}

// ownStore reads what is in a directory that no server has.
func ownStore(t *testing.T, dir string) (revision int64, id string) {
	t.Helper()
	v, err := store.OpenView(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return v.Revision(), v.ID()
}

func TestRestoreCommand(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		name := createSnapshot(t, flags, "good one")
		out, _ := restore(t, 0, flags, "--dry-run", "good one")
		if !strings.HasPrefix(out, "nothing was changed: "+name) {
			t.Error(out)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*restore*")); err != nil || len(left) > 0 {
			t.Errorf("the dry run left %v, %v", left, err)
		}
		last := int64(0)
		for range 3 {
			out, errs := restore(t, 0, flags, "newest", "--bump-revision=2")
			var rev int64
			if _, err := fmt.Sscanf(out[strings.Index(out, "revision"):], "revision %d", &rev); err != nil || rev != max(last, 7)+2 && last > 0 || rev <= last || errs != "" {
				t.Errorf("revision %d after %d, %v: %s%s", rev, last, err, out, errs)
			}
			last = rev
			if !slices.Contains(flags, "--copies") {
				// The newest is the safety snapshot by now, held so that nothing prunes it.
				if l := listJSON(t, flags); !slices.Contains(l.Snapshots[len(l.Snapshots)-1].Holds, safetyTag) {
					t.Errorf("not held: %+v", l.Snapshots)
				}
			}
		}
		to := filepath.Join(t.TempDir(), "elsewhere")
		restore(t, 0, flags, name, "--to-dir="+to, "--bump-revision=0")
		if code, out, _ := tarn(t, nil, "check", to); code != exitOK || !strings.Contains(out, "revision  6") {
			t.Errorf("check: exit code %d, %s", code, out)
		}
		_, errs := restore(t, exitRestoreTarget, flags, name, "--to-dir="+to)
		if !strings.Contains(errs, "not empty") {
			t.Error(errs)
		}
		other := filepath.Join(t.TempDir(), "other")
		newStore(t, other)
		_, errs = restore(t, exitRestoreTarget, flags, other)
		if !strings.Contains(errs, "other store") {
			t.Error(errs)
		}
		_, id := ownStore(t, dir)
		restore(t, 0, flags, other, "--other-store")
		if _, now := ownStore(t, dir); now == id {
			t.Error("the other store is not there")
		}
		if !slices.Contains(flags, "--copies") {
			// The snapshot of what was replaced is of the store that was replaced.
			l := listJSON(t, flags)
			if s := l.Snapshots[len(l.Snapshots)-1]; s.StoreID != id || s.Label != "before-restore-of-other" {
				t.Errorf("%+v, store %s", s, id)
			}
		}
		restore(t, exitNoSnapshot, flags, "tarn-20200101T000000Z-r1")
		restore(t, exitRestoreSnapshot, flags, t.TempDir())
		restore(t, exitNoSnapshot, flags, "--continue")
	})
}

// TestRestoreContinue: a restore that was killed in the moment of the exchange.
func TestRestoreContinue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags)
	staged := filepath.Join(dir, "restore-staging")
	// As after the journal was written and before anything was renamed.
	if _, err := store.Restore(t.Context(), store.RestoreOptions{Dir: staged, Source: dir, Empty: true}); err != nil {
		t.Fatal(err)
	}
	v, err := store.OpenView(t.Context(), staged)
	if err != nil {
		t.Fatal(err)
	}
	journal := fmt.Sprintf(`{"snapshot":%q,"revision":%d,"aside":"before-restore-x"}`, name, v.Revision())
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.RestoreJournal), []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	o.dataDir = dir
	err = newServing(o, nil, &syncBuffer{}).run(t.Context(), nil)
	if exitCode(err) != exitRefused || !strings.Contains(err.Error(), "tarn restore --continue") {
		t.Errorf("a start: %v", err)
	}
	if code, _, errs := tarn(t, nil, "check", dir); code != exitNotChecked || !strings.Contains(errs, "--continue") {
		t.Errorf("check: exit code %d, %s", code, errs)
	}
	restore(t, exitRestoreUnfinished, flags, name)
	out, _ := restore(t, 0, flags, "--continue")
	if !strings.Contains(out, "is finished") || !strings.Contains(out, "before-restore-x") {
		t.Error(out)
	}
	if code, out, errs := tarn(t, nil, "check", dir); code != exitOK {
		t.Errorf("check: exit code %d, %s%s", code, out, errs)
	}
	for _, d := range []string{dir, filepath.Join(dir, "before-restore-x")} {
		s := serveDir(t, d, "")
		if v := get(t, s.client(t), "/registry/pods/default/p4"); v != "x" {
			t.Errorf("%s: %q", d, v)
		}
		s.end(t)
	}
}

// TestRestoreKilled kills the process at moments over its life; each time the server starts, at once or after --continue.
func TestRestoreKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *exec.Cmd {
		c := exec.Command(exe, append([]string{"restore", name}, flags...)...)
		c.Env = append(os.Environ(), asTarn...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	start := time.Now()
	if err := begin().Wait(); err != nil {
		t.Fatal(err)
	}
	whole, ended := time.Since(start), 0
	for i := range 30 {
		c := begin()
		time.Sleep(whole * time.Duration(i+2) / 30) // the moments are spread over its life
		_ = c.Process.Signal(syscall.SIGKILL)
		if c.Wait() == nil {
			ended++
		}
		code, out, errs := tarn(t, nil, "check", dir)
		if code == exitNotChecked && strings.Contains(errs, "--continue") {
			restore(t, 0, flags, "--continue")
			code, out, errs = tarn(t, nil, "check", dir)
		}
		if code != exitOK || !strings.Contains(out, "keys      5") {
			t.Fatalf("kill %d: check: exit code %d, %s%s", i, code, out, errs)
		}
	}
	t.Logf("%d of 30 had ended by themselves", ended)
	restore(t, 0, flags, name)
}

func TestRestoreUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "expected"},
		{"x --put", "--key"},
		{"x --key=a --to-dir=b", "--to-dir"},
		{"x --key=a --raw --put", "--raw"},
		{"x --key=a --overwrite", "--put"},
		{"x --bump-revision=0", "--to-dir"},
		{"x --bump-revision=1", "at least 2"},
		{"x --continue", "arguments"},
		{"--continue --to-dir=a", "--data-dir"},
		{"x --output=yaml", "json"},
	} {
		code, _, errs := tarn(t, nil, append([]string{"restore"}, strings.Fields(c.args)...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("tarn restore %s: exit code %d, %s", c.args, code, errs)
		}
	}
}
