// Package systemd is what a service does with systemd: it takes the sockets that were opened
// for it, and tells when it is ready, how it is, and that it is alive.
//
// Without systemd nothing of it has an effect. DESIGN.md says what is told when.
package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// Socket is a listening socket that systemd has opened and passed to this process. systemd
// keeps it: closing this end loses no connection that waits, and the file of a unix socket
// is never removed by it.
type Socket struct {
	net.Listener
	Name string // FileDescriptorName= of the socket unit
}

// firstFD is the number of the first file descriptor that is passed.
const firstFD = 3

// mostSockets is how many are believed to be passed: whoever opens a thousand addresses for one service errs.
const mostSockets = 1000

// The variables that pass sockets.
const (
	envPID   = "LISTEN_PID"
	envFDs   = "LISTEN_FDS"
	envNames = "LISTEN_FDNAMES"
	envPIDFD = "LISTEN_PIDFDID"
)

// Sockets takes the sockets that were passed to this process, in systemd's order; none if it
// was not started by a socket unit. Programs that this one starts get neither the sockets nor the
// variables. It is called once.
//
// An error is returned for a socket that is none of those that are known, does not listen,
// or is no stream socket of IP or unix. Then the process should end: what was passed is not closed.
func Sockets(log *slog.Logger, known ...string) ([]Socket, error) {
	defer os.Unsetenv(envPIDFD)
	n, names, err := passed(log)
	if err == nil && n > 0 {
		err = checkSockets(n, names, known)
	}
	if err != nil || n == 0 {
		for _, variable := range []string{envPID, envFDs, envNames} {
			os.Unsetenv(variable)
		}
		return nil, err
	}
	files := activation.Files(true) // unsets the variables, and closes on exec
	sockets := make([]Socket, 0, n)
	for i, f := range files {
		l, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("take %s: %w", describe(i, names), err)
		}
		f.Close()
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false)
		}
		sockets = append(sockets, Socket{Listener: l, Name: names[i]})
	}
	return sockets, nil
}

// passed reads how many sockets there are for this process, and their names.
func passed(log *slog.Logger) (n int, names []string, err error) {
	count, owner := os.Getenv(envFDs), os.Getenv(envPID)
	if count == "" || owner == "" {
		return 0, nil, nil
	}
	pid, err := strconv.Atoi(owner)
	if err != nil {
		return 0, nil, fmt.Errorf("sockets of systemd: %s is %q and no process; do not set it by hand", envPID, owner)
	}
	if pid != os.Getpid() {
		// A shell between systemd and this process, mostly.
		log.Warn("sockets were passed to another process and are not taken; if that is a shell that starts this one, let it use exec",
			"process", pid, "this", os.Getpid())
		return 0, nil, nil
	}
	n, err = strconv.Atoi(count)
	if err != nil || n < 0 {
		return 0, nil, fmt.Errorf("sockets of systemd: %s is %q and no number; do not set it by hand", envFDs, count)
	}
	if n > mostSockets {
		return 0, nil, fmt.Errorf("sockets of systemd: %s is %d, and more than %d are never passed; do not set it by hand", envFDs, n, mostSockets)
	}
	if text := os.Getenv(envNames); text != "" {
		names = strings.Split(text, ":")
	}
	return n, names, nil
}

// checkSockets tells what is wrong with what was passed, before anything is taken.
func checkSockets(n int, names, known []string) error {
	valid := strings.Join(known, ", ")
	if len(names) != n {
		return fmt.Errorf("sockets of systemd: %d sockets with %d names were passed (%s is %q); set FileDescriptorName= in each socket unit to one of: %s",
			n, len(names), envNames, os.Getenv(envNames), valid)
	}
	var errs []error
	for i, name := range names {
		if err := checkSocket(firstFD + i); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", describe(i, names), err))
		} else if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("%s: nothing is known by that name; set FileDescriptorName= in the socket unit to one of: %s",
				describe(i, names), valid))
		}
	}
	return errors.Join(errs...)
}

// checkSocket tells why a file descriptor is not one to accept clients from. It does not
// take it over: one that is not ours must not be closed.
func checkSocket(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("it is no socket (%w)", err)
	}
	if kind != unix.SOCK_STREAM {
		return errors.New("it is no stream socket; write ListenStream= in the socket unit, not ListenDatagram= or another")
	}
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	if family != unix.AF_INET && family != unix.AF_INET6 && family != unix.AF_UNIX {
		return errors.New("it is neither a TCP nor a unix socket; write an address with a port, or a path, behind ListenStream=")
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return err
	}
	if listens == 0 {
		return errors.New("it is a connection and does not listen; write Accept=no in the socket unit")
	}
	return nil
}

// describe names a socket in an error: by its number, its name and, if it has one, its address.
func describe(i int, names []string) string {
	text := fmt.Sprintf("socket %d of systemd, named %q", i+1, names[i])
	if addr := address(firstFD + i); addr != "" {
		text += ", at " + addr
	}
	return text
}

func address(fd int) string {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return ""
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return net.JoinHostPort(net.IP(sa.Addr[:]).String(), strconv.Itoa(sa.Port))
	case *unix.SockaddrInet6:
		return net.JoinHostPort(net.IP(sa.Addr[:]).String(), strconv.Itoa(sa.Port))
	case *unix.SockaddrUnix:
		return sa.Name
	}
	return ""
}
