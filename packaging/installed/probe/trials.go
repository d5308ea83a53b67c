package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// trial is one thing that is tried.
type trial struct {
	what      string
	forbidden bool // to the service; root can do it all
	try       func() error
}

func forbidden(what string, try func() error) trial { return trial{what, true, try} }
func allowed(what string, try func() error) trial   { return trial{what, false, try} }

// Places that exist in the test: guest/permissions.sh makes the files, host listens.
const (
	dataDir    = "/var/lib/tarn"
	configFile = "/etc/tarn/tarn.yaml"
	ownerOnly  = "/var/lib/other/secret" // 0600, of another user
	tmpFile    = "/tmp/probe-notes"      // for everybody, in the common /tmp
	listenTCP  = "127.0.0.1:4400"        // of another service
	elsewhere  = "192.0.2.1:4400"        // the same, at an address that is not loopback
)

var (
	homeFile = filepath.Join("/home", "alice", "notes") // for everybody, but in a home
	rootFile = filepath.Join("/root", "notes")          // for everybody, but in root's home
)

var trials = []trial{
	allowed("read the configuration", func() error { return read(configFile) }),
	allowed("write into the data directory", func() error { return write(filepath.Join(dataDir, "probe")) }),

	forbidden("read another user's file", func() error { return read(ownerOnly) }),
	forbidden("read the passwords", func() error { return read("/etc/shadow") }),
	forbidden("read a file in a home", func() error { return read(homeFile) }),
	forbidden("read a file in root's home", func() error { return read(rootFile) }),
	forbidden("read a file in the common /tmp", func() error { return read(tmpFile) }),
	forbidden("see the process 1", func() error { return read("/proc/1/cmdline") }),
	forbidden("read the environment of another user's process", func() error { return read("/proc/1/environ") }),
	forbidden("read the kernel's log", func() error { return readSome("/dev/kmsg") }),
	forbidden("read the disk below the pool", func() error { return readSome("/dev/disk/by-id/virtio-zd0") }),

	forbidden("write into /etc", func() error { return write("/etc/probe") }),
	forbidden("write its own configuration", func() error { return open(configFile, os.O_WRONLY) }),
	forbidden("write into /usr", func() error { return write("/usr/bin/probe") }),
	forbidden("write into /var/lib", func() error { return write("/var/lib/probe") }),
	forbidden("set a setting of the kernel", func() error { return open("/proc/sys/kernel/panic", os.O_WRONLY) }),
	forbidden("make a program and run it", makeAndRun),

	forbidden("run zfs", func() error { return run("/usr/sbin/zfs", "list") }),
	forbidden("run zpool", func() error { return run("/usr/sbin/zpool", "list") }),
	forbidden("run a shell", func() error { return run("/bin/sh", "-c", "true") }),
	forbidden("open /dev/zfs", func() error { return open("/dev/zfs", os.O_RDWR) }),

	forbidden("connect to another service of this machine", func() error { return dial("tcp", listenTCP) }),
	forbidden("connect to an address elsewhere", func() error { return dial("tcp", elsewhere) }),
	forbidden("send a datagram", sendDatagram),
	forbidden("listen on another port", func() error { return listen("tcp", "127.0.0.1:4401") }),
	forbidden("listen on all addresses", func() error { return listen("tcp", ":4402") }),
	forbidden("open a raw socket", func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }),
	forbidden("open a packet socket", func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }),
	forbidden("open a netlink socket", func() error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE) }),

	forbidden("become root", func() error { return unix.Setresuid(0, 0, 0) }),
	forbidden("mount something", func() error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") }),
	forbidden("make a name space", func() error { return inThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }) }),
	forbidden("trace another process", trace),
	forbidden("change the clock", setClock),
	forbidden("have a capability", capability),
	forbidden("gain rights by a program", gainRights),
}

func open(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func read(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// readSome reads a file that has no end.
func readSome(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadAtLeast(f, make([]byte, 8192), 1)
	return err
}

func write(path string) error {
	if err := os.WriteFile(path, []byte("probe"), 0o600); err != nil {
		return err
	}
	return os.Remove(path)
}

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil && len(out) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return err
}

// makeAndRun is what somebody does who got to write files.
func makeAndRun() error {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	dir := dataDir
	if os.Geteuid() == 0 {
		dir = "/usr/local/bin"
	}
	path := filepath.Join(dir, "probe-copy")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		return err
	}
	defer os.Remove(path)
	cmd := exec.Command(path, "host")
	if err := cmd.Start(); err != nil {
		return err
	}
	cmd.Process.Kill()
	cmd.Wait()
	return nil
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, 2*time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}

func sendDatagram() error {
	conn, err := net.Dial("udp", listenTCP)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("probe"))
	return err
}

func listen(network, address string) error {
	l, err := net.Listen(network, address)
	if err == nil {
		l.Close()
	}
	return err
}

func socket(domain, kind, protocol int) error {
	fd, err := unix.Socket(domain, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}
