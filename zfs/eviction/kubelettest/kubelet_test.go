package main

import (
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction/kubelettest/harness"
)

func TestKubelet(t *testing.T) { harness.Suite(t, "v1.37.2") }

// TestGolden holds the foretelling against versions that are not compiled here.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/v*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no results of other versions are found: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { harness.CheckGolden(t, file) })
	}
}
