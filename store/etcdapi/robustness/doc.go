// Command robustness runs random clients against a tarn that is killed,
// stopped, paused, and given a slow or full disk, and then checks that what the
// clients saw is linearizable and that every watch kept its guarantees.
//
// Traffic, model and validation are those of etcd's own robustness tests
// (go.etcd.io/etcd/tests/v3/robustness). See README.md.
package main
