package etcdapi

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
)

func putKeys(t *testing.T, addr string, keys ...string) {
	t.Helper()
	kv := pb.NewKVClient(dial(t, addr))
	for _, k := range keys {
		if _, err := kv.Put(testContext(t), &pb.PutRequest{Key: []byte(k), Value: []byte("value")}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPrefixesPage(t *testing.T) {
	_, addr := startServer(t, Config{})
	url := "http://" + addr + PrefixesPath
	if _, body := request(t, "GET", url, ""); body != `{"prefixes":[]}`+"\n" {
		t.Errorf("of an empty store: %s", body)
	}
	putKeys(t, addr, "/registry/pods/a/x", "/registry/pods/a/y", "/registry/pods/a/x", "/registry/health", "/\xff\"/x", "loose")
	resp, body := request(t, "GET", url, "")
	var page PrefixesPage
	if err := json.Unmarshal([]byte(body), &page); err != nil || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v: %s", err, body)
	}
	var got []string
	for _, p := range page.Prefixes {
		got = append(got, fmt.Sprint(p.Prefix, p.Rest, p.Keys, p.Records, p.Writes))
	}
	if text, want := strings.Join(got, " "), `/\xff\"/false 1 1 1 /registry/true 1 1 1 /registry/pods/false 2 3 3 othertrue 1 1 1`; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if resp, _ := request(t, "POST", url, ""); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", resp.Status)
	}
}

// The totals are there while the store takes no writes for lack of room.
func TestPrefixesPageWhenFull(t *testing.T) {
	st, err := store.Open(store.Options{Dir: t.TempDir(), Quota: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	_, addr := startServer(t, Config{Store: st})
	if _, err := pb.NewKVClient(dial(t, addr)).Put(testContext(t), &pb.PutRequest{Key: []byte("a")}); err == nil || len(st.Alarms()) != 1 {
		t.Fatalf("%v, alarms %v", err, st.Alarms())
	}
	if resp, body := request(t, "GET", "http://"+addr+PrefixesPath, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s", resp.Status, body)
	}
}

// With access control the page is for root, and metrics do not tell the names of keys.
func TestPrefixesAreForRoot(t *testing.T) {
	a := newAuthTest(t, Config{})
	if _, err := a.kv.Put(a.as("u"), &pb.PutRequest{Key: []byte("b/secret/x")}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		token string
		code  int
	}{{"", http.StatusBadRequest}, {"nonsense", http.StatusUnauthorized}, {a.token("u"), http.StatusForbidden}, {a.token("root"), http.StatusOK}} {
		resp, text := request(t, "GET", "http://"+a.addr+PrefixesPath, "", "Authorization", tt.token)
		if resp.StatusCode != tt.code || strings.Contains(text, "secret") != (tt.code == http.StatusOK) {
			t.Errorf("token %.3q: %s %s", tt.token, resp.Status, text)
		}
	}
	if _, text := request(t, "GET", "http://"+a.addr+"/metrics", ""); strings.Contains(text, "secret") || !strings.Contains(text, "etcd_mvcc_put_total 1") {
		t.Error("the metrics tell names of keys, or nothing")
	}
}

// With ClientCertAuth a certificate says who asks for a page.
func TestPrefixesWithCertificate(t *testing.T) {
	for _, byCertificate := range []bool{true, false} {
		a, ca, addr := secureAuthTest(t, Config{ClientCertAuth: byCertificate})
		config := ca.client(x509.ExtKeyUsageClientAuth)
		config.NextProtos = []string{"http/1.1"}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		get := func() (int, string) {
			t.Helper()
			resp, err := client.Get("https://" + addr + PrefixesPath)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(text)
		}
		if code, text := get(); code == http.StatusOK {
			t.Errorf("by certificate %v, without a role: %d %s", byCertificate, code, text)
		}
		a.grant(a.as("root"), "client", "root")
		if code, text := get(); (code == http.StatusOK) != byCertificate {
			t.Errorf("by certificate %v, with the role root: %d %s", byCertificate, code, text)
		}
	}
}

// The metrics of the largest prefixes have their names; the others, and clients choose how many, are one.
func TestPrefixMetrics(t *testing.T) {
	_, addr := startServer(t, Config{})
	putKeys(t, addr, "/registry/pods/a/x", "/registry/pods/a/x", "/\xff\"/x", "loose")
	var keys []string
	for i := range 2 * metricPrefixes {
		keys = append(keys, fmt.Sprintf("/%d/x", i))
	}
	putKeys(t, addr, keys...)
	_, body := request(t, "GET", "http://"+addr+"/metrics", "")
	for _, line := range []string{`tarn_prefix_keys{prefix="/registry/pods/"} 1`, `tarn_prefix_writes_total{prefix="/registry/pods/"} 2`} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for name, n := range map[string]int{"tarn_prefix_keys": metricPrefixes + 1, "tarn_prefix_bytes": metricPrefixes + 1, "tarn_prefix_stored_bytes": metricPrefixes + 1, "tarn_prefix_writes_total": metricPrefixes} {
		if got := strings.Count(body, "\n"+name+"{"); got != n {
			t.Errorf("%d of %s, want %d", got, name, n)
		}
	}
	if want := fmt.Sprintf("\ntarn_prefix_keys{prefix=\"other\"} %d\n", metricPrefixes+3); !strings.Contains(body, want) {
		t.Errorf("no %s in\n%s", want, body)
	}
}
