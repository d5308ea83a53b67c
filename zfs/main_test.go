package zfs

import (
	"os"
	"testing"

	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

func TestMain(m *testing.M) {
	fakezfs.Main()
	os.Exit(m.Run())
}
