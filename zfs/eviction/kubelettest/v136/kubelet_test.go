// Package v136 runs the suite of package harness with the kubelet of Kubernetes 1.36.
package v136

import (
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction/kubelettest/harness"
)

func TestKubelet(t *testing.T) { harness.Suite(t, "v1.36.3") }
