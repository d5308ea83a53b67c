// Command launcher takes etcd's command line and becomes a tarn. It lies under
// the name etcd in the directory that etcd's tests take their binaries from.
//
// A cluster of one member is all that it can start. etcd's proxies have nothing
// to do with the server: grpc-proxy and gateway are run by a real etcd.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/api/v3/version"
)

func main() {
	err := launch(os.Args[1:])
	fmt.Fprintln(os.Stderr, "launcher:", err)
	os.Exit(1)
}

// launch replaces this process. It returns only with an error.
func launch(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Dir(self)
	if len(args) > 0 {
		switch args[0] {
		case "--version":
			fmt.Printf("etcd Version: %s\n", version.Version)
			os.Exit(0)
		case "grpc-proxy", "gateway":
			return become(filepath.Join(dir, "etcd-proxy"), args)
		}
	}
	args, err = translate(args)
	if err != nil {
		return err
	}
	return become(filepath.Join(dir, "tarn"), append([]string{"serve"}, args...))
}

// become runs the program in place of this one, so that signals, the exit code
// and the process ID are those of the server.
func become(path string, args []string) error {
	err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return errors.Join(fmt.Errorf("run %s", path), err)
}
