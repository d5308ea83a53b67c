// Command k8stest runs the tests that the Kubernetes apiserver has for its own
// storage, unchanged, with a tarn where they start an etcd.
//
// The tests come from the module k8s.io/apiserver. They start their server
// through etcd's package embed; go.mod replaces that package by the one in the
// directory etcdserver, which starts a process. See README.md.
package main
