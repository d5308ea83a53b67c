// Package concurrencypb has the messages and services of etcd's Lock and
// Election, generated from the proto files beside it. They are written for this
// package: etcd's own are part of its server, with all that it depends on.
package concurrencypb

//go:generate go -C generate run . ..
