//go:build zfs

package zfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// TestZFSPool shows that the tests of this kind have ZFS below them.
func TestZFSPool(t *testing.T) {
	pool := zfstest.New(t)
	dataset := pool.Dataset(t, "data", "-o", "recordsize=16K")
	file := filepath.Join(pool.Path("data"), "file")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "zfs", "snapshot", dataset+"@one")
	if err := os.WriteFile(file, []byte("behind"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(pool.Path("data"), ".zfs/snapshot/one/file"))
	if err != nil || string(got) != "before" {
		t.Errorf("the snapshot has %q, %v", got, err)
	}
	if _, err := zfstest.TryAs(65534, 65534, "zfs", "destroy", dataset+"@one"); err == nil {
		t.Error("a user without any rights destroyed a snapshot")
	}
}
