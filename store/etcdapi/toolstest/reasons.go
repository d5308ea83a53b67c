package main

// Reasons that several skips have. "Documented" is what docs/compatibility.md
// or docs/configuration.md says.
const (
	manyMembers = "needs several members, of which some stop or are cut off while the others go on"
	addsMembers = "adds a member or learner; there are no others (documented)"
	listed      = "counts the members of the cluster, or compares them with each other"
	peers       = "tests the traffic between members"
	discovery   = "tests the discovery service by which members find each other"
	etcdFiles   = "opens, changes or checks the files of etcd's data directory: backend, raft log and raft snapshots (documented)"
	deprecation = "tests how etcd warns of or refuses flags of its own past; tarn accepts and ignores them (documented)"
	etcdLog     = "waits for words, or wants the fields, of etcd's log"
	noFlag      = "needs a flag of etcd that tarn does not have, and refuses: "
	notWritten  = "is empty in etcd too, but for a skip without a reason"
	separate    = "needs --listen-client-http-urls: tarn has gRPC and HTTP on the same port"
)
