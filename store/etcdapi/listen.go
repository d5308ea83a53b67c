package etcdapi

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// socketMode lets the socket's owner and group connect: on a machine without
// client certificates that is the access control.
const socketMode = 0o660

// ListenURL is an address to listen on: http or https with host and port, unix
// or unixs with the path of a socket.
type ListenURL struct {
	Scheme string // "http", "https", "unix" or "unixs"
	Addr   string // host:port or path
}

// ParseListenURL reads one URL. The path of a socket may be relative, as in
// unix://tarn.sock. It returns an error when the scheme is unknown, the port is
// missing or no port, the host is *, or the URL has parts that mean nothing here.
func ParseListenURL(raw string) (ListenURL, error) {
	fail := func(why string) (ListenURL, error) {
		return ListenURL{}, fmt.Errorf("URL %q: %s", raw, why)
	}
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok {
		return fail("no scheme; write for example http://127.0.0.1:2379 or unix:///run/tarn/tarn.sock")
	}
	switch scheme {
	case "unix", "unixs":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return fail("the path of the socket is missing")
		}
		return ListenURL{Scheme: scheme, Addr: path}, nil
	case "http", "https":
	default:
		return fail("the scheme must be http, https, unix or unixs")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fail(err.Error())
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fail("only a host and a port may follow the scheme")
	}
	if u.Port() == "" {
		return fail("the port is missing")
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
		return fail("the port must be at most 65535")
	}
	if u.Hostname() == "*" {
		return fail(fmt.Sprintf("* is no host; to listen at every address write %s://0.0.0.0:%s, or with IPv6 %s://[::]:%s",
			scheme, u.Port(), scheme, u.Port()))
	}
	return ListenURL{Scheme: scheme, Addr: u.Host}, nil
}

// Secure is whether TLS is spoken there.
func (u ListenURL) Secure() bool { return u.Scheme == "https" || u.Scheme == "unixs" }

func (u ListenURL) unix() bool { return strings.HasPrefix(u.Scheme, "unix") }

// String is the URL as it can be parsed again.
func (u ListenURL) String() string { return u.Scheme + "://" + u.Addr }

// Listener is a net.Listener that knows its URL, so that Serve knows whether to
// speak TLS. For a socket that was passed in, fill in both fields.
type Listener struct {
	net.Listener
	URL ListenURL
}

// Listen opens a listener. The file that a server left at a socket's path when
// it died is replaced; one that a running server listens on is not, and an
// error is returned. A socket has mode 0660.
func Listen(u ListenURL) (*Listener, error) {
	var l net.Listener
	var err error
	if u.unix() {
		l, err = listenUnix(u.Addr)
	} else {
		l, err = net.Listen("tcp", u.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", u, err)
	}
	return &Listener{Listener: l, URL: u}, nil
}

func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket; move it away or choose another path", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("%s is in use by a running server; stop it or choose another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot tell whether a server uses %s: %w", path, err)
	}
	return os.Remove(path)
}
