package etcdapi

import (
	"fmt"
	"testing"
)

func parsedVersion(t *testing.T, s string) [3]int {
	t.Helper()
	var v [3]int
	if n, err := fmt.Sscanf(s, "%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 || err != nil {
		t.Fatalf("%q is not x.y.z: %v", s, err)
	}
	if fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) != s {
		t.Fatalf("%q has something beside x.y.z", s)
	}
	return v
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// progressIsTrusted is kube-apiserver's rule for consistent reads from its cache
// and for WatchList.
func progressIsTrusted(v [3]int) bool {
	if !less(v, [3]int{3, 5, 13}) {
		return true
	}
	return !less(v, [3]int{3, 4, 31}) && less(v, [3]int{3, 5, 0})
}

func TestVersionPassesTheGatesOfClients(t *testing.T) {
	v := parsedVersion(t, etcdVersion)
	t.Run("TOP-1 kube-apiserver", func(t *testing.T) {
		if !progressIsTrusted(v) {
			t.Errorf("kube-apiserver would switch features off for %s", etcdVersion)
		}
		if progressIsTrusted([3]int{3, 5, 0}) || !progressIsTrusted([3]int{3, 4, 31}) {
			t.Error("the rule in this test is wrong")
		}
	})
	t.Run("kubeadm", func(t *testing.T) {
		if less(v, [3]int{3, 5, 24}) {
			t.Errorf("kubeadm would refuse %s", etcdVersion)
		}
	})
	t.Run("clientv3 RejectOldCluster", func(t *testing.T) {
		if less(v, [3]int{3, 6, 0}) {
			t.Errorf("a 3.7 client would refuse %s", etcdVersion)
		}
	})
	for _, s := range []string{etcdClusterVersion, etcdStorageVersion} {
		if w := parsedVersion(t, s); w != [3]int{v[0], v[1], 0} {
			t.Errorf("%s does not go with %s", s, etcdVersion)
		}
	}
	if etcdClusterMinor != fmt.Sprintf("%d.%d", v[0], v[1]) || etcdMajor != v[0] || etcdDownMinor != v[1]-1 {
		t.Errorf("the versions of Downgrade do not go with %s", etcdVersion)
	}
}
