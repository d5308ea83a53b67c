//go:build tools

package main

// For go.mod and go.sum: the tests that are run, and the programs that they run.
import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
	_ "go.etcd.io/etcd/server/v3"
	_ "go.etcd.io/etcd/tests/v3/framework"
)
