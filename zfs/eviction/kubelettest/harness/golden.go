package harness

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// Golden is what the kubelet of one version did with Table.
type Golden struct {
	Version string                  `json:"version"`
	Results map[string]GoldenResult `json:"results"`
}

// GoldenResult is an outcome, or why the kubelet would not start.
type GoldenResult struct {
	*Outcome
	Error string `json:"error,omitempty"`
}

// CheckGolden holds what package eviction foretells against what a kubelet did once.
func CheckGolden(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g Golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	v, err := eviction.ParseVersion(g.Version)
	if err != nil {
		t.Fatal(err)
	}
	table := Table(v)
	if len(table) != len(g.Results) {
		t.Errorf("%s has %d results, and the table has %d cases: make it anew with golden.sh", file, len(g.Results), len(table))
	}
	for _, c := range table {
		t.Run(c.Name, func(t *testing.T) {
			result, ok := g.Results[c.Name]
			if !ok {
				t.Fatalf("%s does not have it: make it anew with golden.sh", file)
			}
			var failed error
			if result.Error != "" {
				failed = errors.New(result.Error)
			}
			for _, d := range Differences(c.Node, eviction.Examine(c.Node), result.Outcome, failed) {
				t.Error(d)
			}
		})
	}
}
