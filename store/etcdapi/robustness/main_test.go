package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// bins are the programs under test. TestMain builds them.
var bins binaries

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "robustness")
	if err == nil {
		defer os.RemoveAll(dir)
		bins, err = findBinaries(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
