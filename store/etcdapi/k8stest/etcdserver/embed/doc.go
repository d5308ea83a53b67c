// Package embed stands in for the package of the same name in etcd's server:
// it has that part of its API that the tests of k8s.io/apiserver use, and
// starts a server process where the original runs a server in the test.
//
// The process is the one that the environment names (see EnvBinary). Its
// address is chosen here, not taken from the configuration, so that no other
// process of the machine can have got it since the test chose it.
package embed
