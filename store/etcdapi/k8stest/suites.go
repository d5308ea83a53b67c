package main

// module is the module whose tests are run; go.mod says in which version.
const module = "k8s.io/apiserver/pkg/"

// shared is the package of the test functions that all implementations of the
// apiserver's storage interface have to pass.
const shared = module + "storage/testing"

// The two suites that call the functions of shared.
const (
	bareStore  = "storage/etcd3"  // the store that talks to the server
	watchCache = "storage/cacher" // the cache in front of that store
)

// suites are the packages below module whose tests need a server. The first
// two run the shared functions, the others use storage as the apiserver does:
// over TLS and with health checks, through the generic registry, and with the
// leases of the list of apiservers.
var suites = []string{
	bareStore,
	watchCache,
	"storage/storagebackend/factory",
	"registry/generic/registry",
	"reconcilers",
}
