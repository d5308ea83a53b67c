package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

func field(num protowire.Number, content ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(content, nil))
}

func entry(num protowire.Number, key, value string) []byte {
	return field(num, field(1, []byte(key)), field(2, []byte(value)))
}

func number(num protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), n)
}

// kubeValue is a stored object: the envelope, its metadata, and other fields.
func kubeValue(apiVersion, kind, name string, fields ...[]byte) string {
	meta := field(1, field(1, []byte(name)), field(3, []byte("default")), field(5, []byte("uid-"+name)), field(8, number(1, 1_750_000_000)),
		entry(11, "app", name), entry(12, "note", "yes: no"))
	unknown := [][]byte{field(1, field(1, []byte(apiVersion)), field(2, []byte(kind))), field(2, append([][]byte{meta}, fields...)...), field(3), field(4)}
	return kubeProtobuf + string(bytes.Join(unknown, nil))
}

// kubeKeys are keys as an API server stores them.
func kubeKeys() map[string]string {
	return map[string]string{
		"/registry/secrets/default/db":      kubeValue("v1", "Secret", "db", entry(2, "password", "s3cret\x00"), field(3, []byte("Opaque")), number(5, 1)),
		"/registry/secrets/default/db-old":  kubeValue("v1", "Secret", "db-old", entry(2, "password", "old"), field(3, []byte("Opaque"))),
		"/registry/secrets/default/sealed":  "k8s:enc:secretbox:v1:key1:\x01\x02\x03",
		"/registry/configmaps/default/conf": kubeValue("v1", "ConfigMap", "conf", entry(2, "a.yaml", "x: 1\ny: 2\n"), entry(3, "bin", "\xff")),
		"/registry/pods/default/web":        kubeValue("v1", "Pod", "web", field(2, []byte("\x08\x01"))),
		"/registry/example.com/things/a/b":  `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"}}`,
		"text":                              "plain text",
		"binary":                            "\x00\xff\x1b[31m",
		"broken":                            kubeProtobuf + "\xff\xff",
	}
}

// keysWorld is a server with those keys and a snapshot of it.
func keysWorld(t *testing.T) (s *running, flags []string, name string) {
	dir := filepath.Join(t.TempDir(), "data")
	s = serveDir(t, dir, "")
	for key, value := range kubeKeys() {
		if err := put(t, s.client(t), key, value); err != nil {
			t.Fatal(err)
		}
	}
	flags = []string{"--data-dir=" + dir, "--copies"}
	return s, append(flags, "--endpoint="+s.url), createSnapshot(t, append(flags, "--endpoint="+s.url))
}

func TestRestoreKeyPrints(t *testing.T) {
	_, flags, name := keysWorld(t)
	page, errs := restore(t, 0, flags, name, "--key=/registry/secrets/default/db")
	if strings.Contains(page, "db-old") || errs != "" {
		t.Errorf("more than the one key: %s%s", page, errs)
	}
	var secret kubeObject
	if err := yaml.Unmarshal([]byte(page), &secret); err != nil {
		t.Fatal(err)
	}
	if secret.APIVersion != "v1" || secret.Kind != "Secret" || secret.Type != "Opaque" || secret.Data["password"] != "czNjcmV0AA==" || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("%+v from\n%s", secret, page)
	}
	if m := secret.Metadata; m.Name != "db" || m.Namespace != "default" || m.UID != "uid-db" || m.CreationTimestamp != "2025-06-15T15:06:40Z" || m.Labels["app"] != "db" || m.Annotations["note"] != "yes: no" {
		t.Errorf("%+v", m)
	}
	for key, want := range map[string][]string{
		"/registry/secrets/default/":        {"password: czNjcmV0AA==", "password: b2xk", "encrypted by kube-apiserver with secretbox:v1:key1", "encrypted: azhzOmVuYzpzZWNyZXRib3g6djE6a2V5MToBAgM="},
		"/registry/configmaps/default/conf": {"kind: ConfigMap", "x: 1", "bin: /w=="},
		"/registry/pods/":                   {"kind: Pod", "name: web", "only the metadata"},
		"/registry/example.com/":            {`"kind":"Thing"`},
		"text":                              {"value: plain text"},
		"binary":                            {"base64: AP8bWzMxbQ=="},
		"broken":                            {"base64: azhzAP//"},
	} {
		page, _ := restore(t, 0, flags, name, "--key="+key)
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("--key %s: no %q in\n%s", key, text, page)
			}
		}
		for d := yaml.NewDecoder(strings.NewReader(page)); ; {
			var doc any
			if err := d.Decode(&doc); err != nil {
				if err.Error() != "EOF" {
					t.Errorf("--key %s: %v in\n%s", key, err, page)
				}
				break
			}
		}
	}
	for key, value := range kubeKeys() {
		if raw, _ := restore(t, 0, flags, name, "--key="+key, "--raw"); raw != value {
			t.Errorf("--raw of %s: %q instead of %q", key, raw, value)
		}
	}
	restore(t, exitUsage, flags, name, "--key=/registry/", "--raw")
	restore(t, exitUsage, flags, name, "--key=text", "--raw", "--prefix")
	page, _ = restore(t, 0, flags, name, "--key=/registry/secrets/default/d", "--prefix")
	if !strings.Contains(page, "czNjcmV0AA==") || !strings.Contains(page, "b2xk") {
		t.Errorf("--prefix prints %s", page)
	}
	_, errs = restore(t, exitNoSnapshot, flags, name, "--key=/registry/secrets/none")
	if !strings.Contains(errs, "/registry/TYPE/NAMESPACE/NAME") {
		t.Error(errs)
	}
}

func TestRestoreKeyJSON(t *testing.T) {
	_, flags, name := keysWorld(t)
	all := kubeKeys()
	for _, key := range []string{"/registry/", "text", "binary", "broken"} {
		page, _ := restore(t, 0, flags, name, "--output=json", "--key="+key)
		for d := json.NewDecoder(strings.NewReader(page)); d.More(); {
			var r keyRecord
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			switch {
			case r.Version != 1 || r.ModRevision < 2 || r.CreateRevision != r.ModRevision || r.Lease != "":
				t.Errorf("%+v", r)
			case r.Form == formJSON:
				if string(r.JSON) != all[r.Key] {
					t.Errorf("%s: %s", r.Key, r.JSON)
				}
			case !r.Complete && string(r.Value) != all[r.Key], r.Complete && r.Object == nil:
				t.Errorf("%s: %q", r.Key, r.Value)
			}
			delete(all, r.Key)
		}
	}
	if len(all) > 0 {
		t.Errorf("not printed: %v", all)
	}
}

// TestRestoreKeyPut: what is put back has the very bytes that it had; nothing is replaced unasked.
func TestRestoreKeyPut(t *testing.T) {
	s, flags, name := keysWorld(t)
	c := s.client(t)
	kv := etcdserverpb.NewKVClient(c)
	remove := func() {
		t.Helper()
		if _, err := kv.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte("/registry/secrets/"), RangeEnd: []byte("/registry/secrets0")}); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{name, "--key=/registry/secrets/", "--put"}
	_, errs := restore(t, exitRestoreExists, flags, args...)
	if !strings.Contains(errs, "nothing was written: 3 key(s) exist") {
		t.Error(errs)
	}
	remove()
	if out, _ := restore(t, 0, flags, append(args, "--dry-run")...); !strings.Contains(out, "nothing was written: 3 key(s) would be put") {
		t.Error(out)
	}
	if resp, err := kv.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("/registry/secrets/"), RangeEnd: []byte("/registry/secrets0")}); err != nil || resp.Count != 0 {
		t.Errorf("a dry run has written: %v, %v", resp, err)
	}
	if out, _ := restore(t, 0, flags, args...); !strings.Contains(out, "3 key(s) were put") {
		t.Error(out)
	}
	for key, value := range kubeKeys() {
		if got := get(t, c, key); got != value {
			t.Errorf("%s: %q instead of %q", key, got, value)
		}
	}
	if err := put(t, c, "/registry/secrets/default/db", "new"); err != nil {
		t.Fatal(err)
	}
	out, _ := restore(t, 0, flags, append(args, "--overwrite", "--output=json")...)
	var v putVerdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Keys != 3 || v.Replaced != 3 || v.Revision == 0 || v.Endpoint != s.url {
		t.Errorf("%+v, %v", v, err)
	}
	if got := get(t, c, "/registry/secrets/default/db"); got != kubeKeys()["/registry/secrets/default/db"] {
		t.Errorf("not overwritten: %q", got)
	}
	s.end(t)
	if _, errs = restore(t, exitFailed, flags, args...); !strings.Contains(errs, "put keys into "+s.url) {
		t.Error(errs)
	}
}

// TestRestoreKeyPutLeases: a lease that the server still has is kept, one that is gone is told; many
// keys take many transactions.
func TestRestoreKeyPutLeases(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := serveDir(t, dir, "")
	c := s.client(t)
	kv, leases := etcdserverpb.NewKVClient(c), etcdserverpb.NewLeaseClient(c)
	for id := range int64(2) {
		if _, err := leases.LeaseGrant(t.Context(), &etcdserverpb.LeaseGrantRequest{ID: id + 1, TTL: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	const n = 3*putOps + 1
	for i := range n {
		req := &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "k%04d", i), Value: bytes.Repeat([]byte{'v'}, 20_000), Lease: int64(i % 3)}
		if _, err := kv.Put(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	flags := []string{"--data-dir=" + dir, "--copies", "--endpoint=" + s.url}
	name := createSnapshot(t, flags)
	if _, err := leases.LeaseRevoke(t.Context(), &etcdserverpb.LeaseRevokeRequest{ID: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte{'k'}, RangeEnd: []byte{'l'}}); err != nil {
		t.Fatal(err)
	}
	out, _ := restore(t, 0, flags, name, "--key=k", "--prefix", "--put")
	if !strings.Contains(out, fmt.Sprintf("%d key(s) were put", n)) || !strings.Contains(out, fmt.Sprintf("NOTE: %d of them had a lease that is gone", n/3)) || !strings.Contains(out, "and 50 more") {
		t.Error(out)
	}
	resp, err := kv.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte{'k'}, RangeEnd: []byte{'l'}})
	if err != nil || len(resp.Kvs) != n {
		t.Fatalf("%d keys, %v", len(resp.GetKvs()), err)
	}
	for i, x := range resp.Kvs {
		if want := []int64{0, 1, 0}[i%3]; x.Lease != want || len(x.Value) != 20_000 {
			t.Errorf("%s: lease %d instead of %d", x.Key, x.Lease, want)
		}
	}
}

// TestRestoreKeyEnvironment: TARN_KEY is the key of a certificate here as well.
func TestRestoreKeyEnvironment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags)
	code, out, errs := tarn(t, []string{"TARN_KEY=some.pem"}, append([]string{"restore", "--dry-run", name}, flags...)...)
	if code != exitOK || !strings.HasPrefix(out, "nothing was changed") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, _, errs = tarn(t, []string{"TARN_KEY=some.pem"}, append([]string{"restore", name, "--key=/registry/", "--put", "--endpoint=https://127.0.0.1:1"}, flags...)...)
	if code != exitUsage || !strings.Contains(errs, "--cert and --client-key are needed together") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestKubeKeys(t *testing.T) {
	for key, want := range map[string]kubeKey{
		"/registry/pods/default/web":                       {"pods", "default", "web"},
		"/registry/namespaces/default":                     {"namespaces", "", "default"},
		"/registry/services/specs/default/kubernetes":      {"services/specs", "default", "kubernetes"},
		"/registry/example.com/things/ns/name":             {"example.com/things", "ns", "name"},
		"/registry/apiregistration.k8s.io/apiservices/v1.": {"apiregistration.k8s.io/apiservices", "", "v1."},
		"/registry/masterleases/10.0.0.1":                  {"masterleases", "", "10.0.0.1"},
		"/registry/health":                                 {"", "", "/registry/health"},
		"compact_rev_key":                                  {"", "", "compact_rev_key"},
		"":                                                 {},
	} {
		if got := parseKubeKey(key); got != want {
			t.Errorf("%q: %+v", key, got)
		}
	}
}

// FuzzStoredValue: no value makes the printing fail, or prints what a terminal takes for a command.
func FuzzStoredValue(f *testing.F) {
	for _, value := range kubeKeys() {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r := &keyRecord{Key: "k", value: value}
		s := readValue(value)
		r.Form, r.Object, r.JSON, r.Scheme, r.Value = s.form, s.object, s.json, s.scheme, value
		var out bytes.Buffer
		if err := printText(&out, r); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if i := bytes.IndexByte(out.Bytes(), 0x1b); i >= 0 {
			t.Errorf("an escape at byte %d of %q", i, out.String())
		}
		var doc any
		if err := yaml.Unmarshal(out.Bytes(), &doc); err != nil && s.form != formJSON {
			t.Errorf("%v in %q", err, out.String())
		}
	})
}

// A key that is not there stands for no others: with --put they would be written.
func TestRestoreKeyIsNoPrefix(t *testing.T) {
	s, flags, name := keysWorld(t)
	c := s.client(t)
	if err := put(t, c, "/registry/secrets/default/db", "newer"); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--raw"}, {"--put", "--overwrite"}} {
		_, errs := restore(t, exitNoSnapshot, flags, append([]string{name, "--key=/registry/secrets/default/d"}, more...)...)
		if !strings.Contains(errs, "/registry/secrets/default/db, /registry/secrets/default/db-old;") || !strings.Contains(errs, "--prefix") {
			t.Errorf("%q: %s", more, errs)
		}
	}
	if v := get(t, c, "/registry/secrets/default/db"); v != "newer" {
		t.Errorf("the server has %q", v)
	}
}
