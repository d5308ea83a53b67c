// Command toolstest runs the tests that etcd has for its tools and its client,
// and a few of its own, with a tarn where they start an etcd of one member.
//
// The tests come from the module go.etcd.io/etcd/tests/v3. See README.md.
package main
