package etcdapi

// The etcd version whose behaviour this server has. Clients switch features on
// and off by it, so this is the only place that names it (TOP-1).
//
// kube-apiserver reads consistent lists from its cache, and accepts WatchList
// requests, only from servers that are 3.5.13 or later, or in [3.4.31, 3.5.0);
// with any other version it silently loads the store with full lists. 3.7.3 is
// the version with RangeStream and the fields of StatusResponse that are filled
// here. It must be a plain x.y.z: a pre-release suffix makes it compare lower.
const (
	etcdVersion        = "3.7.3"
	etcdClusterVersion = "3.7.0"
	etcdStorageVersion = "3.7.0"

	// etcdClusterMinor is what Downgrade answers; the only version that it
	// accepts to validate is the minor before.
	etcdClusterMinor = "3.7"
	etcdMajor        = 3
	etcdDownMinor    = 6
)
