package main

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/systemd"
)

// unit is what systemd keeps for a service: its sockets and where it is told of the state.
type unit struct {
	tcp, metrics *net.TCPListener
	unix         *net.UnixListener
	path         string // of unix
	notify       *notifySocket
}

func newUnit(t *testing.T) *unit {
	t.Helper()
	u := &unit{path: filepath.Join(t.TempDir(), "tarn.sock"), notify: listenNotify(t)}
	for _, l := range []**net.TCPListener{&u.tcp, &u.metrics} {
		opened, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { opened.Close() })
		*l = opened.(*net.TCPListener)
	}
	var err error
	if u.unix, err = net.ListenUnix("unix", &net.UnixAddr{Name: u.path, Net: "unix"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.unix.Close() })
	return u
}

// start runs tarn serve as systemd would, with these names for the three sockets.
func (u *unit) start(t *testing.T, names string, args ...string) *child {
	t.Helper()
	return startChildWith(t, func(cmd *exec.Cmd) { u.prepare(t, cmd, names) }, args...)
}

func (u *unit) prepare(t *testing.T, cmd *exec.Cmd, names string) {
	t.Helper()
	for _, l := range []interface{ File() (*os.File, error) }{u.tcp, u.unix, u.metrics} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	cmd.Env = append(cmd.Env, "LISTEN_FDS=3", "LISTEN_FDNAMES="+names, "NOTIFY_SOCKET="+u.notify.path)
	// Only the process itself knows its number.
	cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

func (u *unit) url() string { return "http://" + u.tcp.Addr().String() }

// A client that comes while no server runs waits and is served; systemd is told what happens, in order.
func TestProcessSocketActivation(t *testing.T) {
	u := newUnit(t)
	dir := filepath.Join(t.TempDir(), "data")
	for round := range 2 {
		early := make(chan error, 1)
		cl := (&running{url: u.url()}).client(t)
		go func() {
			_, err := etcdserverpb.NewKVClient(cl).Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("early")})
			early <- err
		}()
		// The flag that startChild sets is not used.
		c := u.start(t, "client:client:metrics", "--data-dir="+dir)
		if c.url != u.url() {
			t.Errorf("it serves at %s, not at %s", c.url, u.url())
		}
		messages := u.notify.await(t, "READY=1")
		if !has(messages, "STATUS=revision") || !has(messages[:1], "STATUS=recovering") {
			t.Errorf("systemd was told %q before it was ready", messages)
		}
		if err := <-early; err != nil {
			t.Errorf("round %d: the client that waited: %v", round, err)
		}
		u.checkServed(t)
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		u.notify.await(t, "RELOADING=1\nMONOTONIC_USEC=")
		u.notify.await(t, "READY=1")
		log, code := c.end(t, syscall.SIGTERM)
		if code != exitOK {
			t.Errorf("exit code %d:\n%s", code, log)
		}
		u.notify.await(t, "STOPPING=1")
	}
	for _, addr := range []net.Addr{u.tcp.Addr(), u.unix.Addr()} {
		conn, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Errorf("after the stop a client is refused: %v", err)
			continue
		}
		conn.Close()
	}
}

// checkServed asks on all three sockets, and for what the member list says.
func (u *unit) checkServed(t *testing.T) {
	t.Helper()
	for _, url := range []string{u.url(), "unix://" + u.path} {
		if code, out, errs := tarn(t, nil, "status", "--endpoint="+url); code != exitOK {
			t.Errorf("status at %s: exit code %d: %s%s", url, code, out, errs)
		}
	}
	members, err := etcdserverpb.NewClusterClient((&running{url: u.url()}).client(t)).MemberList(t.Context(), &etcdserverpb.MemberListRequest{})
	if want := []string{u.url(), "unix://" + u.path}; err != nil || !slices.Equal(members.Members[0].ClientURLs, want) {
		t.Errorf("the member list is %v, %v; want %q", members, err, want)
	}
	resp, err := http.Get("http://" + u.metrics.Addr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("readyz on the socket for metrics: %s", resp.Status)
	}
}

// A socket unit with another name is a mistake that is told before anything is made.
func TestProcessSocketNames(t *testing.T) {
	u := newUnit(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(exe, "serve", "--data-dir="+dir)
	cmd.Env = append(os.Environ(), runMain+"=1")
	u.prepare(t, cmd, "client:tarn.socket:metrics")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), `"tarn.socket", at `+u.path) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

// withSocket gives a server in this process a TCP and a unix socket as from systemd.
func withSocket(t *testing.T, change func(*serving)) (tcp, path string, set func(*serving)) {
	u := newUnit(t)
	return u.tcp.Addr().String(), u.path, func(s *serving) {
		change(s)
		s.usePassed([]systemd.Socket{{Listener: u.tcp, Name: passedClient}, {Listener: u.unix, Name: passedClient}})
	}
}

// TLS is spoken on TCP as soon as there is a certificate, and never on a unix socket; a
// certificate that is replaced is in use after SIGHUP, and one that can not be used is not.
func TestPassedSocketsTLS(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", x509.ExtKeyUsageServerAuth)
	n := listenNotify(t)
	tcp, path, set := withSocket(t, notified(t, n, 0))
	o := testOptions(t)
	o.tls = tlsOptions{certFile: a.path("server.crt"), keyFile: a.path("server.key"), minVersion: tls12}
	r := start(t, o, sources{"listen-client-urls": fromFlag}, set)
	ask := func(when string) {
		t.Helper()
		for _, url := range []string{"https://" + tcp, "unix://" + path} {
			if code, out, errs := tarn(t, nil, "status", "--cacert="+a.path("ca.crt"), "--endpoint="+url); code != exitOK {
				t.Errorf("%s, %s: exit code %d: %s%s", when, url, code, out, errs)
			}
		}
	}
	ask("at first")
	for _, want := range []string{`level=WARN msg="sockets that systemd passed`, "setting=listen-client-urls", `from="command line"`, `from="systemd socket`} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, r.log)
		}
	}
	reload := func() {
		t.Helper()
		n.await(t, "READY=1")
		r.hup <- syscall.SIGHUP
		if m := n.await(t, "RELOADING=1"); has(m[:len(m)-1], "READY=1") {
			t.Errorf("told before the reload: %q", m)
		}
	}
	good, err := os.ReadFile(a.path("server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path("server.crt"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload()
	ask("after a reload of a file that is no certificate")
	if !strings.Contains(r.log.String(), "can not be used; the old ones stay") {
		t.Errorf("log:\n%s", r.log)
	}
	if err := os.WriteFile(a.path("server.crt"), good, 0o600); err != nil {
		t.Fatal(err)
	}
	reload()
	n.await(t, "READY=1")
	ask("after a reload of the old file")
	if !strings.Contains(r.log.String(), "files of certificates were read again") {
		t.Errorf("log:\n%s", r.log)
	}
}

// Half a setup of TLS is refused, with the socket's name instead of a flag that is not there.
func TestPassedSocketsHalfTLS(t *testing.T) {
	_, _, set := withSocket(t, func(*serving) {})
	o := testOptions(t)
	o.tls.trustedCAFile = "ca.pem"
	s := newServing(o, nil, &syncBuffer{})
	set(s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.run(ctx, nil)
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), `systemd socket "client"`) || !strings.Contains(err.Error(), "--cert-file") {
		t.Errorf("the error is %v", err)
	}
}
