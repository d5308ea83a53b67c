package main

// suite is a package of tests.
type suite struct {
	name string
	dir  string // of the package, below etcd's tests; own: below this directory
	tags string
	own  bool
	// It starts etcd, etcdctl and etcdutl from the directory of its flag
	// -bin-dir. The others take the directory from the environment.
	binDir bool
}

// suites in the order in which they run. The first two start processes of
// etcd, etcdctl and etcdutl; those of integration start etcd and use the
// client, or plain gRPC.
var suites = []suite{
	{name: "common/etcdctl", dir: "common", tags: "e2e", binDir: true},
	{name: "common/clientv3", dir: "common", tags: "integration"},
	{name: "e2e", dir: "e2e", binDir: true},
	{name: "grpc", dir: "integration"},
	{name: "clientv3", dir: "integration/clientv3"},
	{name: "clientv3/concurrency", dir: "integration/clientv3/concurrency"},
	{name: "clientv3/connectivity", dir: "integration/clientv3/connectivity"},
	{name: "clientv3/examples", dir: "integration/clientv3/examples"},
	{name: "clientv3/lease", dir: "integration/clientv3/lease"},
	{name: "clientv3/naming", dir: "integration/clientv3/naming"},
	{name: "clientv3/recipes", dir: "integration/clientv3/experimental/recipes"},
	{name: "clientv3/watch", dir: "integration/clientv3/watch"},
	{name: "tools", dir: "tools", own: true},
}
