package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// cacheModule is what one file of the tests uses: a cache in front of etcd's
// client. The module is not published in that version.
const cacheModule = "go.etcd.io/etcd/cache/v3"

// patches are the changes to etcd's tests themselves; ../leak is leakModule.
var patches = []struct{ file, old, new, why string }{
	{
		"framework/e2e/etcd_process.go",
		`EtcdServerReadyLines = []string{"ready to serve client requests"}`,
		`EtcdServerReadyLines = []string{"ready to serve client requests", "serving clients"}`,
		"the line of the log that says that the server answers",
	},
	{
		"framework/e2e/cluster.go",
		"\tSkipInShortMode(tb)\n\n\tif cfg.Logger == nil {",
		"\tSkipInShortMode(tb)\n\n\tcfg.ClusterSize = 1\n\tif cfg.Logger == nil {",
		"most tests that have three members do not need them",
	},
	{
		"e2e/watch_test.go",
		"maxWatchDelay time.Duration) {\n",
		"maxWatchDelay time.Duration) {\n\tmaxWatchDelay *= 6\n",
		"150 ms are for a machine that does nothing else; a watch that is starved by reads is late by seconds",
	},
	{
		"../leak/testutil/leak.go",
		"\t\t\t\t\"crypto/tls.(*certCache).evict\",\n",
		"\t\t\t\t\"crypto/tls.(*certCache).evict\",\n\t\t\t\t\"runtime.runCleanups\",\n",
		"Go runs clean-ups, of crypto/tls too, on a goroutine of its own when the collector wants it, and no test left that behind",
	},
}

// absent are the files and directories of etcd's tests that are taken out or
// not run, and why. Their tests count as skipped.
var absent = []struct{ path, reason string }{
	{"integration/cache_test.go", "tests a cache in front of the client, of a module that is not published in this version"},
	{"integration/cluster_test.go", manyMembers},
	{"integration/member_test.go", manyMembers},
	{"integration/network_partition_test.go", manyMembers},
	{"integration/v3_leadership_test.go", manyMembers},
	{"integration/corrupt_test.go", "damages etcd's backend inside the process, to see members compare their hashes"},
	{"integration/tracing_test.go", "starts an etcd inside the test, to see its OpenTelemetry spans"},
	{"integration/utl_wal_version_test.go", "reads etcd's raft log"},
	{"integration/embed", "tests the Go API of an etcd inside another program"},
	{"integration/proxy", "tests etcd's proxy as a Go package; as a program it runs in e2e"},
	{"integration/snapshot", "starts an etcd inside the test on files that etcdutl restored; tools has that with processes"},
	{"integration/v2store", "tests a Go package of etcd"},
	{"integration/clientv3/snapshot", "starts an etcd inside the test; saving a snapshot runs in e2e and tools"},
	{"robustness", "looks for anomalies of several members under faults; a suite of its own runs it on one member"},
	{"framework", "tests of the tests"},
}

// removed are the files among absent: their package is run, without them.
func removed() []string {
	var files []string
	for _, a := range absent {
		if strings.HasSuffix(a.path, ".go") {
			files = append(files, a.path)
		}
	}
	return files
}

// patch changes the copy of etcd's tests. An error is returned when a change
// does not fit.
func (w *workspace) patch(context.Context) error {
	for _, p := range patches {
		path := filepath.Join(w.tree, p.file)
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(content), p.old); n != 1 {
			return fmt.Errorf("patch %s (%s): the text to change is there %d times", p.file, p.why, n)
		}
		changed := strings.Replace(string(content), p.old, p.new, 1)
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			return err
		}
	}
	for _, file := range removed() {
		path := filepath.Join(w.tree, file)
		if err := os.Rename(path, path+absentSuffix); err != nil {
			return err
		}
	}
	return nil
}

// absentSuffix hides a file from go without losing the names of its tests.
const absentSuffix = ".absent"

// testFunction matches a test or an example; TestMain is neither.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\((?:t \*testing\.T)?\)`)

// notRun returns the tests of absent.
func (w *workspace) notRun() (*results, error) {
	r := &results{suite: "not run", byName: map[string]*test{}}
	for _, a := range absent {
		root := filepath.Join(w.tree, a.path)
		if strings.HasSuffix(root, ".go") {
			root += absentSuffix
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.Contains(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, match := range testFunction.FindAllSubmatch(content, -1) {
				r.skip(a.path+" "+string(match[1]), a.reason)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}
