package etcdapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestGateway(t *testing.T) {
	s, addr := startServer(t, Config{})
	base := "http://" + addr
	post := func(t *testing.T, path, body string, code int) map[string]any {
		t.Helper()
		resp, text := request(t, "POST", base+path, body)
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != code {
			t.Fatalf("%s: %s %s, %v", path, resp.Status, text, err)
		}
		return got
	}
	want := func(t *testing.T, got map[string]any, body string) {
		t.Helper()
		var w map[string]any
		if err := json.Unmarshal([]byte(body), &w); err != nil {
			t.Fatal(err)
		}
		delete(got, "header")
		if !reflect.DeepEqual(got, w) {
			t.Errorf("got %v, want %s", got, body)
		}
	}
	t.Run("GW-1 paths", func(t *testing.T) {
		for _, path := range strings.Fields(`/v3/kv/range /v3/kv/put /v3/kv/deleterange /v3/kv/txn /v3/kv/compaction /v3/watch
			/v3/lease/grant /v3/lease/revoke /v3/lease/keepalive /v3/lease/timetolive /v3/lease/leases
			/v3/kv/lease/revoke /v3/kv/lease/timetolive /v3/kv/lease/leases
			/v3/cluster/member/add /v3/cluster/member/remove /v3/cluster/member/update /v3/cluster/member/list /v3/cluster/member/promote
			/v3/maintenance/alarm /v3/maintenance/status /v3/maintenance/defragment /v3/maintenance/hash /v3/maintenance/hashkv
			/v3/maintenance/snapshot /v3/maintenance/transfer-leadership /v3/maintenance/downgrade
			/v3/auth/enable /v3/auth/disable /v3/auth/status /v3/auth/authenticate /v3/auth/user/add /v3/auth/role/grant
			/v3/lock/lock /v3/lock/unlock /v3/election/campaign /v3/election/proclaim /v3/election/leader /v3/election/observe /v3/election/resign`) {
			if _, ok := s.gateway.methods[path]; !ok {
				t.Errorf("no %s", path)
			}
		}
		want(t, post(t, "/v3/nonsense", "{}", 404), `{"code":5,"message":"Not Found"}`)
		if resp, body := request(t, "GET", base+"/v3/kv/range", ""); resp.StatusCode != 501 || !strings.Contains(body, `"code":12`) {
			t.Errorf("GET: %s %s", resp.Status, body)
		}
	})
	t.Run("GW-2 GW-3", func(t *testing.T) {
		want(t, post(t, "/v3/kv/range", `{"key":"YQ=="}`, 200), `{}`)
		post(t, "/v3/kv/put", `{"key":"YQ==","value":"MQ==","lease":"0","nonsense":1}`, 200)
		post(t, "/v3beta/kv/put", `{"key":"Yg==","value":"Mg==","lease":0}`, 200)
		want(t, post(t, "/v3/kv/range", `{"key":"YQ==","rangeEnd":"eg==","limit":"1","sort_order":"DESCEND"}`, 200),
			`{"kvs":[{"key":"Yg==","create_revision":"3","mod_revision":"3","version":"1","value":"Mg=="}],"more":true,"count":"2"}`)
	})
	t.Run("GW-4", func(t *testing.T) {
		want(t, post(t, "/v3/kv/range", `{}`, 400), `{"code":3,"message":"etcdserver: key is not provided"}`)
		want(t, post(t, "/v3/kv/range", `{"key":"YQ==","revision":99}`, 400), `{"code":11,"message":"etcdserver: mvcc: required revision is a future revision"}`)
		want(t, post(t, "/v3/lease/revoke", `{"ID":"77"}`, 404), `{"code":5,"message":"etcdserver: requested lease not found"}`)
		want(t, post(t, "/v3/auth/enable", `{}`, 400), `{"code":9,"message":"etcdserver: root user does not exist"}`)
		if got := post(t, "/v3/kv/range", `{`, 400); got["code"] != 3.0 {
			t.Errorf("bad JSON: %v", got)
		}
	})
	t.Run("GW-5 keepalive", func(t *testing.T) {
		post(t, "/v3/lease/grant", `{"ID":"5","TTL":"60"}`, 200)
		_, body := request(t, "POST", base+"/v3/lease/keepalive", `{"ID":"5"} {"ID":"6"}`)
		lines := strings.Split(strings.TrimSpace(body), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `"TTL":"60"`) || strings.Contains(lines[1], "TTL") {
			t.Errorf("got %q", lines)
		}
	})
	t.Run("web pages", func(t *testing.T) {
		resp, body := request(t, "POST", base+"/v3/kv/put", `{"key":"YQ=="}`, "Origin", "http://page.example")
		if resp.StatusCode != 403 {
			t.Errorf("a page wrote: %s %s", resp.Status, body)
		}
		_, named := startServer(t, Config{CORS: []string{"http://page.example"}})
		resp, body = request(t, "POST", "http://"+named+"/v3/kv/put", `{"key":"YQ=="}`, "Origin", "http://page.example")
		if resp.StatusCode != 200 {
			t.Errorf("%s %s", resp.Status, body)
		}
	})
}

// TestGatewayWatch is GW-5 for a stream that does not end by itself.
func TestGatewayWatch(t *testing.T) {
	s, addr := startServer(t, Config{})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+addr+"/v3/watch", strings.NewReader(`{"create_request":{"key":"YQ=="}}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	next := func() string {
		t.Helper()
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		return line
	}
	if line := next(); !strings.Contains(line, `"created":true`) {
		t.Errorf("first line %s", line)
	}
	if _, err := etcdserverpb.NewKVClient(dial(t, addr)).Put(ctx, &etcdserverpb.PutRequest{Key: []byte("a"), Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if line := next(); !strings.Contains(line, `"events":[{"kv":{"key":"YQ=="`) {
		t.Errorf("second line %s", line)
	}
	if err := s.Stop(testContext(t)); err != nil {
		t.Error(err)
	}
	if line := next(); !strings.Contains(line, `"error":{"code":14,"message":"etcdserver: server stopped"}`) {
		t.Errorf("V-18: last line %s", line)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}
