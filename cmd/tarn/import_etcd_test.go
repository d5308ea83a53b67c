package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store"
)

// savedSnapshot makes a store with a few keys and writes what `snapshot save` would.
func savedSnapshot(t *testing.T) (file string, hash uint32) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 5 {
		op := store.Op{Put: &store.PutRequest{Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("value")}}
		res, err := s.Txn(t.Context(), &store.TxnRequest{Success: []store.Op{op}})
		if err != nil {
			t.Fatal(err)
		}
		res.Close()
	}
	kv, err := s.HashKV(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	file = filepath.Join(t.TempDir(), "snapshot.db")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := snap.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if _, err := f.Write(sum[:]); err != nil {
		t.Fatal(err)
	}
	return file, kv.Hash
}

func TestImportEtcd(t *testing.T) {
	file, hash := savedSnapshot(t)
	dir := filepath.Join(t.TempDir(), "data")

	code, out, errs := tarn(t, nil, "import", "etcd", file, "--data-dir", dir, "--dry-run")
	if code != exitOK || !strings.HasPrefix(out, "nothing was written") || errs != "" {
		t.Errorf("dry run: exit code %d: %s%s", code, out, errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the dry run made the directory")
	}
	code, out, errs = tarn(t, []string{"TARN_DATA_DIR=" + dir}, "import", "etcd", "--output=json", file)
	var v importVerdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || errs != "" {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if v.DataDir != dir || len(v.StoreID) != 32 || v.Keys != 5 || v.Records != 5 || v.Revision != 6 || v.Hash != hash || v.StorageVersion != "3.7.0" {
		t.Errorf("got %+v", v)
	}
	if code, out, errs := tarn(t, nil, "check", dir); code != exitOK || !strings.Contains(out, fmt.Sprintf("hash %08x", hash)) {
		t.Errorf("check: exit code %d: %s%s", code, out, errs)
	}
	if _, out, _ := tarn(t, nil, "check", dir); !strings.Contains(out, v.StoreID) || !strings.Contains(out, fmt.Sprintf("(etcdctl prints %d)", hash)) {
		t.Errorf("the store is %s, its hash %d, but check prints\n%s", v.StoreID, hash, out)
	}
	c := startChild(t, "--store-id="+v.StoreID, "--data-dir="+dir)
	if err := put(t, (&running{url: c.url}).client(t), "key", "value"); err != nil {
		t.Error(err)
	}
	if log, code := c.end(t, os.Interrupt); code != 0 {
		t.Errorf("serve: exit code %d: %s", code, log)
	}
}

// A start where an import was cut off does not begin with an empty store; the import can be run again.
func TestServeAfterUnfinishedImport(t *testing.T) {
	file, _ := savedSnapshot(t)
	left := writeFile(t, treeFile+".import", "x")
	dir := filepath.Dir(left)
	code, _, errs := tarn(t, nil, "serve", "--data-dir="+dir, "--listen-client-urls=http://127.0.0.1:0")
	if code != exitRefused || !strings.Contains(errs, "run `tarn import etcd` again, or remove "+left) {
		t.Errorf("serve: exit code %d: %s", code, errs)
	}
	if code, out, errs := tarn(t, nil, "import", "etcd", file, "--data-dir", dir); code != exitOK {
		t.Errorf("import: exit code %d: %s%s", code, out, errs)
	}
}

func TestImportInterrupted(t *testing.T) {
	file, _ := savedSnapshot(t)
	dir := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := runImportEtcd(ctx, importEtcdOptions{file: file, dataDir: dir}, process{stdout: io.Discard, stderr: io.Discard})
	if exitCode(err) != exitFailed || !strings.Contains(fmt.Sprint(err), "interrupted, nothing was written") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the import left the directory")
	}
}

func TestImportEtcdExitCodes(t *testing.T) {
	file, _ := savedSnapshot(t)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(content)
	taken := filepath.Dir(writeFile(t, treeFile, "x"))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no file given":   {nil, exitUsage, "arguments: 0 given"},
		"empty directory": {[]string{file, "--data-dir="}, exitUsage, "--data-dir"},
		"missing file":    {[]string{file + "x"}, exitFailed, "no such file"},
		"text":            {[]string{writeFile(t, "file", "text")}, exitImportSource, "is no database"},
		"changed":         {[]string{writeFile(t, "file", strings.Replace(whole, "value", "evalu", 1))}, exitImportSource, "not that of its content"},
		"without hash":    {[]string{writeFile(t, "file", whole[:len(whole)-sha256.Size])}, exitImportSource, "--skip-hash-check"},
		"taken":           {[]string{file, "--data-dir", taken}, exitImportTarget, "holds tree.db"},
	} {
		args := append([]string{"import", "etcd"}, c.args...)
		if c.code != exitImportTarget {
			args = append(args, "--dry-run")
		}
		if code, out, errs := tarn(t, nil, args...); code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, code, c.code, out, errs)
		}
	}
	noHash := writeFile(t, "file", whole[:len(whole)-sha256.Size])
	if code, _, errs := tarn(t, nil, "import", "etcd", noHash, "--dry-run", "--skip-hash-check"); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestImportHelp(t *testing.T) {
	for _, args := range [][]string{{"import"}, {"import", "--help"}, {"import", "etcd", "--help"}} {
		if code, out, _ := tarn(t, nil, args...); code != exitOK || !strings.Contains(out, "Exit codes: 0 ") {
			t.Errorf("%q: exit code %d, and it must list the exit codes:\n%s", args, code, out)
		}
	}
	if code, _, errs := tarn(t, nil, "import", "etdc"); code != exitUsage || !strings.Contains(errs, `did you mean "etcd"?`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
