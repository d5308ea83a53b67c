package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Ports that the e2e tests have for their server, one after another.
const (
	firstPort = 20000
	lastPort  = 20004
)

// portsFree returns an error when something listens where the e2e tests want
// their server.
func portsFree() error {
	for port := firstPort; port <= lastPort; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("etcd's tests need the ports %d to %d of 127.0.0.1; end what listens there: %w", firstPort, lastPort, err)
		}
		l.Close()
	}
	return nil
}

// endServers kills the processes whose binary lies below dir: those that a
// failed test left behind. Without /proc there is nothing to find them by.
func endServers(dir string) {
	processes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range processes {
		path, err := os.Readlink(exe)
		if err != nil || !strings.HasPrefix(path, filepath.Join(dir, "bin")+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(exe))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
