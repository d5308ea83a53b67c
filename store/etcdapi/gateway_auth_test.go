package etcdapi

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestGatewayTokens(t *testing.T) {
	a := newAuthTest(t, Config{})
	body := `{"key":"YQ=="}`
	url := "http://" + a.addr + "/v3/kv/range"
	token := a.token("u")
	for _, tt := range []struct {
		name   string
		header []string
		code   int
	}{
		{"none", nil, http.StatusBadRequest},
		{"authorization", []string{"Authorization", token}, http.StatusOK},
		{"bearer", []string{"Authorization", "Bearer " + token}, http.StatusOK},
		{"metadata", []string{"Grpc-Metadata-Token", token}, http.StatusOK},
		{"bad", []string{"Authorization", "nonsense"}, http.StatusUnauthorized},
	} {
		t.Run("GW-4/"+tt.name, func(t *testing.T) {
			if resp, text := request(t, "POST", url, body, tt.header...); resp.StatusCode != tt.code {
				t.Errorf("%s: %s", resp.Status, text)
			}
		})
	}
	if resp, text := request(t, "POST", url, `{"key":"eg=="}`, "Authorization", token); resp.StatusCode != http.StatusForbidden {
		t.Errorf("AUT-15: %s: %s", resp.Status, text)
	}
}

func TestLogLevelPageIsForRoot(t *testing.T) {
	a := newAuthTest(t, Config{LogLevel: new(slog.LevelVar)})
	for _, tt := range []struct {
		token string
		code  int
	}{{"", http.StatusBadRequest}, {"nonsense", http.StatusUnauthorized}, {a.token("u"), http.StatusForbidden}, {a.token("root"), http.StatusOK}} {
		resp, text := request(t, "PUT", "http://"+a.addr+"/debug/log-level", "debug", "Authorization", tt.token)
		if resp.StatusCode != tt.code || (a.s.cfg.LogLevel.Level() == slog.LevelDebug) != (tt.code == http.StatusOK) {
			t.Errorf("token %.3q: %s %s", tt.token, resp.Status, text)
		}
	}
}

func TestGatewayCertificateName(t *testing.T) {
	a, ca, addr := secureAuthTest(t, Config{ClientCertAuth: true})
	post := func(config *tls.Config, token string) (int, string) {
		config.NextProtos = []string{"http/1.1"}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(a.ctx, "POST", "https://"+addr+"/v3/kv/range", strings.NewReader(`{"key":"YQ=="}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text := make([]byte, 200)
		n, _ := resp.Body.Read(text)
		return resp.StatusCode, string(text[:n])
	}
	named := ca.client(x509.ExtKeyUsageClientAuth)
	nameless := ca.client()
	cert, err := tls.LoadX509KeyPair(ca.issue("", x509.ExtKeyUsageClientAuth))
	if err != nil {
		t.Fatal(err)
	}
	nameless.Certificates = []tls.Certificate{cert}
	t.Run("GW-6", func(t *testing.T) {
		if code, text := post(named, a.token("u")); code != http.StatusBadRequest || !strings.Contains(text, commonNameIgnored) {
			t.Errorf("%d %s", code, text)
		}
		if code, text := post(nameless, a.token("u")); code != http.StatusOK {
			t.Errorf("%d %s", code, text)
		}
	})
	t.Run("AUT-14/gateway", func(t *testing.T) {
		if _, err := a.auth.AuthDisable(a.as("root"), &pb.AuthDisableRequest{}); err != nil {
			t.Fatal(err)
		}
		if code, text := post(named, ""); code != http.StatusOK {
			t.Errorf("off: %d %s", code, text)
		}
	})
}
