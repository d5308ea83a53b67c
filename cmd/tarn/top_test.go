package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// someKeys puts keys of three prefixes, and deletes one.
func someKeys(t *testing.T, url string) {
	t.Helper()
	cl := (&running{url: url}).client(t)
	for _, kv := range [][2]string{
		{"/registry/pods/a/x", strings.Repeat("v", 3000)}, {"/registry/leases/a/x", "1"}, {"/registry/leases/a/x", "2"},
		{"/registry/leases/a/y", "1"}, {"/registry/health", "true"}, {"loose", "1"}, {"/registry/leases/a/x", "3"},
	} {
		if err := put(t, cl, kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := etcdserverpb.NewKVClient(cl).DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte("/registry/leases/a/y")}); err != nil {
		t.Fatal(err)
	}
}

// firstLines are the names, and the numbers of keys, records and writes, of a page's lines.
func firstLines(page string) string {
	var b strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+) +\S+ \S+ +(\d+) +\S+ \S+ +(\S+) +(.+)$`).FindAllStringSubmatch(page, -1) {
		b.WriteString(m[4] + "=" + m[1] + "," + m[2] + "," + m[3] + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestTop(t *testing.T) {
	r := start(t, testOptions(t), nil)
	someKeys(t, r.url)
	for args, want := range map[string]string{
		"":                        "/registry/pods/=1,1,1 /registry/leases/=1,5,5 /registry/ (rest)=1,1,1 other=1,1,1 total=4,8,8",
		"--sort=stored --limit=2": "/registry/pods/=1,1,1 /registry/leases/=1,5,5 total=4,8,8",
		"--sort=writes --limit=1": "/registry/leases/=1,5,5 total=4,8,8",
		"--sort=keys --limit=0":   "/registry/ (rest)=1,1,1 /registry/leases/=1,5,5 /registry/pods/=1,1,1 other=1,1,1 total=4,8,8", // all have one
	} {
		code, out, errs := tarn(t, []string{"TARN_ENDPOINT=" + r.url, "TARN_DATA_DIR=/of/the/server"}, append([]string{"top"}, strings.Fields(args)...)...)
		if code != exitOK || firstLines(out) != want || errs != "" {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errs)
		}
		if cut := !strings.Contains(want, "other"); strings.Contains(out, "more with --limit 0") != cut {
			t.Errorf("%s: %s", args, out)
		}
	}
	code, out, errs := tarn(t, nil, "top", "--endpoint="+r.url, "--limit=1", "--output=json")
	var got topReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || errs != "" {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if len(got.Prefixes) != 1 || got.Hidden != 3 || got.Total.Keys != 4 || got.Total.Records != 8 || got.Prefixes[0].Bytes < 3000 || got.Endpoint != r.url {
		t.Errorf("%+v", got)
	}
}

// The log is read too: a directory as a killed server leaves it.
func TestTopOfDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	c := startChild(t, "--data-dir="+dir)
	someKeys(t, c.url)
	code, _, errs := tarn(t, nil, "top", "--data-dir="+dir)
	if code != exitFailed || !strings.Contains(errs, "in use") || !strings.Contains(errs, "--endpoint") {
		t.Errorf("of a running server: exit code %d, %s", code, errs)
	}
	c.end(t, os.Kill)
	before := filesIn(t, dir)
	code, out, errs := tarn(t, nil, "top", "--data-dir="+dir)
	if want := "/registry/pods/=1,1,- /registry/leases/=1,5,- /registry/ (rest)=1,1,- other=1,1,- total=4,8,-"; code != exitOK || firstLines(out) != want || errs != "" {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if after := filesIn(t, dir); after != before {
		t.Errorf("the directory has changed: %s, was %s", after, before)
	}
	if err := os.Remove(filepath.Join(dir, treeFile)); err != nil {
		t.Fatal(err)
	}
	if code, _, errs = tarn(t, nil, "top", "--data-dir="+dir); code != exitFailed || !strings.Contains(errs, "damaged") {
		t.Errorf("without its tree: exit code %d, %s", code, errs)
	}
	if code, _, errs = tarn(t, nil, "top", "--data-dir="+t.TempDir()); code != exitFailed || !strings.Contains(errs, "holds no store") {
		t.Errorf("an empty directory: exit code %d, %s", code, errs)
	}
}

// filesIn lists the names and contents below a directory.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		b.WriteString(path + " " + info.ModTime().String() + string(text[:min(len(text), 100)]) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTopErrors(t *testing.T) {
	old := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(old.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + l.Addr().String()
	t.Cleanup(func() { l.Close() })
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--endpoint=http://127.0.0.1:1", exitFailed, "no server is reachable there"},
		{"--endpoint=" + old.URL, exitFailed, "no page /debug/prefixes"},
		{"--timeout=1ms --endpoint=" + silent, exitFailed, "no answer in time"},
		{"--data-dir=x --endpoint=" + silent, exitUsage, "give one of them"},
		{"--limit=-1", exitUsage, "at least 0"},
		{"--sort=name", exitUsage, "bytes, stored, keys, writes"},
		{"more", exitUsage, "arguments"},
	} {
		if code, out, errs := tarn(t, nil, append([]string{"top"}, strings.Fields(tt.args)...)...); code != tt.code || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%s: exit code %d, %s%s", tt.args, code, out, errs)
		}
	}
}

func TestTopWithUsers(t *testing.T) {
	o := testOptions(t)
	o.auth.bcryptCost = 4
	r := start(t, o, nil)
	cl := r.client(t)
	auth := etcdserverpb.NewAuthClient(cl)
	for _, name := range []string{"root", "u"} {
		if _, err := auth.UserAdd(t.Context(), &etcdserverpb.AuthUserAddRequest{Name: name, Password: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := auth.UserGrantRole(t.Context(), &etcdserverpb.AuthUserGrantRoleRequest{User: "root", Role: "root"}); err != nil {
		t.Fatal(err)
	}
	someKeys(t, r.url)
	if _, err := auth.AuthEnable(t.Context(), &etcdserverpb.AuthEnableRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitFailed, "who you are"},
		{[]string{"--user=u:u"}, exitFailed, "role root"},
		{[]string{"--user=root:no"}, exitFailed, "does not accept the password"},
		{[]string{"--user=root:root"}, exitOK, "/registry/pods/"},
	} {
		code, out, errs := tarn(t, nil, append([]string{"top", "--endpoint=" + r.url}, tt.args...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) {
			t.Errorf("%v: exit code %d, %s%s", tt.args, code, out, errs)
		}
	}
}
