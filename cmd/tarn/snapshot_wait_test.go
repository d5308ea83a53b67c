package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// Snapshots that are made at the same time, without a server, are all made.
func TestSnapshotsInTurn(t *testing.T) {
	dir, flags, _, _ := copiesWorld(t)
	held, err := vfs.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if code, _, errs := tarn(t, nil, append([]string{"snapshot", "create"}, flags...)...); code != 0 {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if list := listJSON(t, flags); len(list.Snapshots) != 5 {
		t.Errorf("list is %+v", list)
	}
}

// withoutPatience lets snapshots wait for nobody.
func withoutPatience(t *testing.T) {
	t.Helper()
	was := commandPatience
	commandPatience = 0
	t.Cleanup(func() { commandPatience = was })
}

// Another command is not a thing to stop: that is the advice for servers alone.
func TestHeldByAnotherCommand(t *testing.T) {
	dir, flags, _, second := copiesWorld(t)
	held, err := vfs.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	withoutPatience(t)
	texts := map[string]string{}
	_, texts["create"] = snapshotCommand(t, exitFailed, flags, "create")
	_, texts["restore"] = restore(t, exitRestoreInUse, flags, second)
	_, texts["restore --dry-run"] = restore(t, exitRestoreInUse, flags, second, "--dry-run")
	_, _, texts["check"] = tarn(t, nil, "check", dir)
	_, texts["diff"] = snapshotCommand(t, exitFailed, flags, "diff", second)
	_, _, texts["top"] = tarn(t, nil, "top", "--data-dir="+dir)
	_, _, texts["serve"] = tarn(t, nil, "serve", "--listen-client-urls=http://127.0.0.1:0", "--data-dir="+dir)
	for command, text := range texts {
		if strings.Count(text, "wait until it has ended") != 1 || strings.Contains(text, "stop th") {
			t.Errorf("%s: %s", command, text)
		}
	}
}
