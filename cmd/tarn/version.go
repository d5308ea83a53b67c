package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// tarnVersion is the version of this program, and the only place that has it.
const tarnVersion = "0.1.0"

// etcdAPIModule holds the definition of the API that this program speaks; its
// version is the version of the API.
const etcdAPIModule = "go.etcd.io/etcd/api/v3"

// versionInfo is what tarn version prints; the JSON names are stable.
type versionInfo struct {
	Tarn   string `json:"tarn"`
	Etcd   string `json:"etcdAPI,omitempty"`
	Go     string `json:"go"`
	Commit string `json:"commit,omitempty"`
	// Modified tells that the source differed from Commit when it was built.
	Modified bool `json:"modified,omitempty"`
}

// buildInfo is what the linker wrote into the binary; nil if there is nothing.
func buildInfo() *debug.BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return info
}

func currentVersion(build *debug.BuildInfo) versionInfo {
	v := versionInfo{Tarn: tarnVersion, Go: runtime.Version()}
	if build == nil {
		return v
	}
	for _, d := range build.Deps {
		if d.Path == etcdAPIModule {
			v.Etcd = strings.TrimPrefix(d.Version, "v")
		}
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func newVersionCommand(p process) *cobra.Command {
	output := outputText
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of tarn, of the etcd API that it speaks, of Go, and the commit
that it was built from where the build knew it.

Exit codes: 0 printed, 1 the output could not be written, 2 the command line is
not valid.`,
		Args: exactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			return printVersion(p.stdout, currentVersion(buildInfo()), output)
		},
	}
	addOutputFlag(cmd.Flags(), &output)
	return cmd
}

func printVersion(w io.Writer, v versionInfo, output outputFormat) error {
	if output == outputJSON {
		return json.NewEncoder(w).Encode(v)
	}
	commit := cmp.Or(v.Commit, "unknown")
	if v.Modified {
		commit += " (with local changes)"
	}
	_, err := fmt.Fprintf(w, "tarn      %s\netcd API  %s\nGo        %s\ncommit    %s\n",
		v.Tarn, cmp.Or(v.Etcd, "unknown"), v.Go, commit)
	return err
}
