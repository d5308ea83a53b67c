package etcdapi

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestParseListenURL(t *testing.T) {
	good := map[string]ListenURL{
		"http://127.0.0.1:2379":      {"http", "127.0.0.1:2379"},
		"https://[::1]:2379":         {"https", "[::1]:2379"},
		"http://localhost:2379/":     {"http", "localhost:2379"},
		"unix:///run/tarn/tarn.sock": {"unix", "/run/tarn/tarn.sock"},
		"unix:/run/tarn.sock":        {"unix", "/run/tarn.sock"},
		"unixs://tarn.sock":          {"unixs", "tarn.sock"},
	}
	for raw, want := range good {
		got, err := ParseListenURL(raw)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
		if again, err := ParseListenURL(got.String()); err != nil || again != got {
			t.Errorf("%s: %q does not read back: %+v, %v", raw, got, again, err)
		}
	}
	for _, raw := range []string{
		"", "2379", "127.0.0.1:2379", "ftp://127.0.0.1:21", "http://127.0.0.1", "unix://", "unix:",
		"http://127.0.0.1:2379/v3", "http://u@127.0.0.1:2379", "http://127.0.0.1:2379?x=1", "http://[::1:2379",
		"http://127.0.0.1:65536", "http://127.0.0.1:-1", "http://127.0.0.1:http", "http://*:2379", "https://*:2379",
	} {
		if u, err := ParseListenURL(raw); err == nil {
			t.Errorf("%q was accepted as %+v", raw, u)
		}
	}
}

// TestUnixSocket is TLS-8.
func TestUnixSocket(t *testing.T) {
	s, err := New(Config{Store: openStore(t, t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tarn.sock")
	u := ListenURL{Scheme: "unix", Addr: path}

	leaveStaleSocket(t, path)
	l, err := Listen(u)
	if err != nil {
		t.Fatalf("a stale socket was not replaced: %v", err)
	}
	serveOn(t, s, l)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket mode %v, %v", info.Mode(), err)
	}
	t.Run("TLS-8 gRPC", func(t *testing.T) {
		_, err := etcdserverpb.NewMaintenanceClient(dial(t, "unix:"+path)).Status(testContext(t), &etcdserverpb.StatusRequest{})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("TLS-8 HTTP", func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			},
		}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("http://tarn/version")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Error(resp.Status)
		}
	})
	t.Run("live socket is refused", func(t *testing.T) {
		if l, err := Listen(u); err == nil {
			l.Close()
			t.Error("the socket of a running server was taken over")
		}
	})
	t.Run("other file is refused", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(file, []byte("keep"), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := Listen(ListenURL{Scheme: "unix", Addr: file}); err == nil {
			l.Close()
			t.Error("a file was replaced by a socket")
		}
		if b, _ := os.ReadFile(file); string(b) != "keep" {
			t.Error("the file is gone")
		}
	})
}

// leaveStaleSocket leaves what a killed server leaves.
func leaveStaleSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}
