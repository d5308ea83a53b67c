package vfs

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSharesBlocksLeavesNothing: it is only a try.
func TestSharesBlocksLeavesNothing(t *testing.T) {
	src, dir := filepath.Join(t.TempDir(), "src"), t.TempDir()
	if err := os.WriteFile(src, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	shares, err := SharesBlocks(dir, src)
	t.Logf("copies share their blocks here: %v, %v", shares, err)
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left %v, %v", names, err)
	}
	if _, err := SharesBlocks(dir, src+"x"); !os.IsNotExist(err) {
		t.Errorf("of a missing file: %v", err)
	}
}
