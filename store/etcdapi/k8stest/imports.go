//go:build tools

package main

// For go.mod and go.sum: the packages whose tests are run, and what starts their server.
import (
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "k8s.io/apiserver/pkg/reconcilers"
	_ "k8s.io/apiserver/pkg/registry/generic/registry"
	_ "k8s.io/apiserver/pkg/storage/cacher"
	_ "k8s.io/apiserver/pkg/storage/etcd3"
	_ "k8s.io/apiserver/pkg/storage/storagebackend/factory"
)
