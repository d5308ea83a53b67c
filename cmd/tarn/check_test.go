package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/tree"
)

func TestCheckNoStore(t *testing.T) {
	empty := t.TempDir()
	for name, dir := range map[string]string{
		"missing":     filepath.Join(empty, "missing"),
		"not a store": empty,
		"a file":      writeFile(t, "file", "x"),
	} {
		code, out, errs := tarn(t, nil, "check", dir)
		if code != exitNotChecked || out != "" || !strings.Contains(errs, "not checked: ") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("the check left %v in a directory that it had to leave alone, %v", left, err)
	}
}

// A directory of etcd is answered with the import.
func TestCheckDirOfEtcd(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, errs := tarn(t, nil, "check", dir)
	if want := "tarn import etcd " + filepath.Join(dir, "member", "snap", "db"); code != exitNotChecked || !strings.Contains(errs, want) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// What was not computed is not printed.
func TestCheckOfUnreadableTree(t *testing.T) {
	dir := filepath.Dir(writeFile(t, treeFile, strings.Repeat("text", 4096)))
	code, out, _ := tarn(t, nil, "check", dir)
	if code != exitCheckDamaged || !strings.HasPrefix(out, "DAMAGED: ") {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, line := range []string{"store ", "revision ", "keys ", "log "} {
		if strings.Contains(out, "\n"+line) {
			t.Errorf("%q in\n%s", line, out)
		}
	}
	_, out, _ = tarn(t, nil, "check", "--output=json", dir)
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"revision", "compactRevision", "keys", "hash", "walBytes", "frames", "tornTail"} {
		if value, ok := v[name]; ok {
			t.Errorf("%s is %v", name, value)
		}
	}
	if v["ok"] != false || v["storeID"] != "" {
		t.Errorf("got %v", v)
	}
}

func TestCheckTreeWithoutID(t *testing.T) {
	tr, err := tree.Open(tree.Options{Path: filepath.Join(t.TempDir(), treeFile)})
	if err != nil {
		t.Fatal(err)
	}
	tr.Close()
	if code, out, errs := tarn(t, nil, "check", filepath.Dir(tr.Path())); code != exitOK || !strings.Contains(out, "gets its ID at the first start") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// killedStore makes a directory whose log holds several changes, each with a
// value of its own.
func killedStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	c := startChild(t, "--data-dir="+dir)
	cl := (&running{url: c.url}).client(t)
	for i := range 5 {
		if err := put(t, cl, "key", fmt.Sprintf("value-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	c.end(t, os.Kill)
	return dir
}

func TestCheckDamagedLog(t *testing.T) {
	dir := killedStore(t)
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte("value-1"))
	if at < 0 {
		t.Fatal("the log does not hold the value")
	}
	text[at] ^= 1
	if err := os.WriteFile(segments[0], text, 0o600); err != nil {
		t.Fatal(err)
	}

	code, out, errs := tarn(t, nil, "check", dir)
	if code != exitCheckDamaged || !strings.HasPrefix(out, "DAMAGED: ") || !strings.Contains(out, segments[0]) || errs != "" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = tarn(t, nil, "check", "--output=json", dir)
	var v checkVerdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitCheckDamaged || v.OK || len(v.Findings) == 0 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	code, _, errs = tarn(t, nil, "serve", "--data-dir="+dir, "--listen-client-urls=http://127.0.0.1:0")
	if code != exitDamaged || !strings.Contains(errs, segments[0]) {
		t.Errorf("serve: exit code %d: %s", code, errs)
	}
}

func TestCheckTornTail(t *testing.T) {
	dir := killedStore(t)
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	// As if the power had gone while the last record was written.
	at := bytes.Index(text, []byte("value-4"))
	clear(text[at:])
	if err := os.WriteFile(segments[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := tarn(t, nil, "check", dir)
	if code != exitOK || !strings.HasPrefix(out, "OK\n") || !strings.Contains(out, "torn last record") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// A pipe where a file is needed is refused at once.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, treeFile)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code int
		args []string
	}{
		{exitNotChecked, []string{"check", dir}},
		{exitImportSource, []string{"import", "etcd", pipe, "--dry-run"}},
		{exitUsage, []string{"serve", "--config-file=" + pipe}},
		{exitFailed, []string{"serve", "--data-dir=" + dir, "--listen-client-urls=http://127.0.0.1:0"}},
		{exitUsage, []string{"serve", "--data-dir=" + dir, "--listen-client-urls=https://127.0.0.1:0", "--cert-file=" + pipe, "--key-file=" + pipe}},
		{exitUsage, []string{"status", "--endpoint=https://127.0.0.1:1", "--cacert=" + pipe}},
	} {
		code, out, errs := tarn(t, nil, tt.args...)
		if code != tt.code || !strings.Contains(errs, pipe+": not a regular file") && !strings.Contains(errs, pipe+" is not a regular file") {
			t.Errorf("%q: exit code %d: %s%s", tt.args, code, out, errs)
		}
	}
}
