// Command golden runs the kubelet's code on the table of package harness and prints what it
// did. golden.sh compiles it with another version of Kubernetes than go.mod has.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/kubelettest/harness"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: golden VERSION, which is that of the kubelet that it was compiled with")
	}
	v, err := eviction.ParseVersion(args[0])
	if err != nil {
		return err
	}
	results := harness.Golden{Version: v.String(), Results: map[string]harness.GoldenResult{}}
	for _, c := range harness.Table(v) {
		o, err := harness.RunNode(context.Background(), c.Node, eviction.Examine(c.Node))
		r := harness.GoldenResult{Outcome: o}
		if err != nil {
			r.Error = err.Error()
		}
		results.Results[c.Name] = r
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(results)
}
