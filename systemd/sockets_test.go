package systemd

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// childEnv makes the test binary take sockets and print what it got. Its value is what
// LISTEN_PID is set to; "self" is the child's own number.
const childEnv = "SYSTEMD_TEST_LISTEN_PID"

// childReport is what a child prints.
type childReport struct {
	Error     string
	Log       string
	Sockets   []string // name, network and address
	Greetings []string // what the first client of each socket sent
	Inherited []string // descriptors and variables that a program it starts would have
}

// child takes the sockets, greets one client on each, closes them and reports.
func child() {
	pid := os.Getenv(childEnv)
	if pid == "self" {
		pid = strconv.Itoa(os.Getpid())
	}
	os.Setenv("LISTEN_PID", pid)
	var r childReport
	var text strings.Builder
	sockets, err := Sockets(slog.New(slog.NewTextHandler(&text, nil)), "client", "metrics")
	if err != nil {
		r.Error = err.Error()
	}
	r.Log = text.String()
	for _, s := range sockets {
		r.Sockets = append(r.Sockets, fmt.Sprintf("%s %s %s", s.Name, s.Addr().Network(), s.Addr()))
		conn, err := s.Accept()
		if err != nil {
			panic(err)
		}
		b, err := io.ReadAll(conn)
		if err != nil {
			panic(err)
		}
		r.Greetings = append(r.Greetings, string(b))
		conn.Close()
	}
	r.Inherited = inherited()
	for _, s := range sockets {
		s.Close()
	}
	json.NewEncoder(os.Stdout).Encode(r)
}

// inherited are the sockets that would stay open in a program started now, and the variables of systemd.
func inherited() (list []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 || fd <= 2 {
			continue
		}
		if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
			list = append(list, e.Name())
		}
	}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "LISTEN_") {
			list = append(list, v)
		}
	}
	return list
}

// filer is a socket that can be passed.
type filer interface{ File() (*os.File, error) }

func pass(t *testing.T, s filer) *os.File {
	t.Helper()
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// runChild starts the test binary with these descriptors from 3 on.
func runChild(t *testing.T, pid string, env []string, files ...*os.File) childReport {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, childEnv+"="+pid)...)
	cmd.ExtraFiles = files
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r childReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func listenTCP(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// greet connects, which succeeds without anybody who accepts, and sends a text.
func greet(t *testing.T, addr net.Addr, text string) {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// A client that came before the process is served by it; what the process closes stays open for the next.
func TestSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	tcp, metrics := listenTCP(t), listenTCP(t)
	for round := range 2 {
		greet(t, tcp.Addr(), "one")
		greet(t, u.Addr(), "two")
		greet(t, metrics.Addr(), "three")
		r := runChild(t, "self", []string{"LISTEN_FDS=3", "LISTEN_FDNAMES=client:client:metrics", "LISTEN_PIDFDID=1"},
			pass(t, tcp), pass(t, u), pass(t, metrics))
		want := []string{"client tcp " + tcp.Addr().String(), "client unix " + path, "metrics tcp " + metrics.Addr().String()}
		if r.Error != "" || !slices.Equal(r.Sockets, want) {
			t.Errorf("round %d: sockets %q, error %q", round, r.Sockets, r.Error)
		}
		if want := []string{"one", "two", "three"}; !slices.Equal(r.Greetings, want) {
			t.Errorf("round %d: clients sent %q", round, r.Greetings)
		}
		if len(r.Inherited) > 0 {
			t.Errorf("round %d: a program that is started would get %q", round, r.Inherited)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("round %d: the process has taken the socket's file away: %v", round, err)
		}
	}
}

func TestSocketsRefused(t *testing.T) {
	tcp := listenTCP(t)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	conn, err := net.Dial("tcp", listenTCP(t).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, tt := range []struct {
		name, pid  string
		fds, names string
		file       *os.File
		want       []string // in the error
	}{
		{"unknown name", "self", "1", "tarn.socket", pass(t, tcp), []string{`"tarn.socket"`, tcp.Addr().String(), "FileDescriptorName=", "client, metrics"}},
		{"no names", "self", "1", "", pass(t, tcp), []string{"1 sockets with 0 names", "FileDescriptorName=", "client, metrics"}},
		{"too many names", "self", "1", "client:metrics", pass(t, tcp), []string{"1 sockets with 2 names"}},
		{"empty name", "self", "2", "client:", pass(t, tcp), []string{"socket 2", `""`}},
		{"no socket", "self", "1", "client", file, []string{"it is no socket"}},
		{"not open", "self", "2", "client:client", pass(t, tcp), []string{"socket 2", "it is no socket"}},
		{"datagram", "self", "1", "client", pass(t, udp), []string{"no stream socket", "ListenStream=", udp.LocalAddr().String()}},
		{"connection", "self", "1", "client", pass(t, conn.(*net.TCPConn)), []string{"does not listen", "Accept=no"}},
		{"count", "self", "many", "client", pass(t, tcp), []string{"LISTEN_FDS", `"many"`}},
		{"absurd count", "self", "999999999", "client", pass(t, tcp), []string{"LISTEN_FDS is 999999999"}},
		{"negative count", "self", "-1", "client", pass(t, tcp), []string{"LISTEN_FDS"}},
		{"process", "init", "1", "client", pass(t, tcp), []string{"LISTEN_PID", `"init"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runChild(t, tt.pid, []string{"LISTEN_FDS=" + tt.fds, "LISTEN_FDNAMES=" + tt.names}, tt.file)
			for _, want := range tt.want {
				if !strings.Contains(r.Error, want) {
					t.Errorf("the error lacks %q: %s", want, r.Error)
				}
			}
			if len(r.Sockets) > 0 {
				t.Errorf("sockets were taken: %q", r.Sockets)
			}
		})
	}
}

// What is for another process, or was not passed at all, is no error.
func TestSocketsOfNobody(t *testing.T) {
	tcp := listenTCP(t)
	r := runChild(t, "1", []string{"LISTEN_FDS=1", "LISTEN_FDNAMES=client"}, pass(t, tcp))
	if r.Error != "" || len(r.Sockets) > 0 || !strings.Contains(r.Log, "another process") {
		t.Errorf("of another process: %+v", r)
	}
	if r := runChild(t, "self", nil); r.Error != "" || len(r.Sockets) > 0 || r.Log != "" {
		t.Errorf("without sockets: %+v", r)
	}
	if r := runChild(t, "self", []string{"LISTEN_FDS=0"}); r.Error != "" || len(r.Sockets) > 0 {
		t.Errorf("zero sockets: %+v", r)
	}
}
