//go:build zfs

package zfs

import (
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

func TestZFSReadSpace(t *testing.T) {
	pool := zfstest.New(t)
	name := pool.Dataset(t, "k8s")
	zfstest.Run(t, "zfs", "snapshot", name+"@daily")
	zfstest.Run(t, "zfs", "snapshot", pool.Dataset(t, "k8s/below")+"@daily")
	testSpace(t, name, pool.Path("k8s"))

	zfstest.Run(t, "zfs", "set", "quota=300M", "refquota=200M", "com.sun:auto-snapshot=false", name)
	spaces, err := ReadSpace(t.Context(), name, name+"/below")
	if err != nil {
		t.Fatal(err)
	}
	s, below := spaces[0], spaces[1]
	if s.Quota != 300<<20 || s.RefQuota != 200<<20 || s.AutoSnapshot != "false" || below.AutoSnapshot != "false" || below.Quota != 0 {
		t.Errorf("%+v and %+v", s, below)
	}
	if s.Used < s.UsedByDataset+s.UsedByChildren || s.UsedByChildren == 0 {
		t.Errorf("%+v", s)
	}
}
