package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// sleeps returns how often the threads of a process have gone to sleep so far.
func sleeps(t *testing.T, pid int) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Skip("there is no /proc to look at")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`\nvoluntary_ctxt_switches:\s*(\d+)`).FindSubmatch(text); m != nil {
			k, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
	}
	return n
}

// idleWatches opens clients with a watch each.
func idleWatches(t *testing.T, url string, clients int) {
	t.Helper()
	for range clients {
		watchAll(t, (&running{url: url}).client(t))
	}
}

// Nothing wakes a server up of which nobody wants anything, with clients connected, watches
// open and changes that are not in the tree yet: no ticker, no poll. The clients' own
// keepalive comes after longer than this looks.
func TestIdleServerSleeps(t *testing.T) {
	sleepsWhenIdle(t, startChild(t, "--data-dir="+filepath.Join(t.TempDir(), "data")))
}

// That systemd is told of the state changes nothing of that. (A watchdog needs its timer.)
func TestIdleServiceSleeps(t *testing.T) {
	n := listenNotify(t)
	c := startChildWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+n.path) },
		"--data-dir="+filepath.Join(t.TempDir(), "data"))
	n.await(t, "READY=1")
	sleepsWhenIdle(t, c)
}

func sleepsWhenIdle(t *testing.T, c *child) {
	t.Helper()
	idleWatches(t, c.url, 10)
	if err := put(t, (&running{url: c.url}).client(t), "key", "value"); err != nil {
		t.Fatal(err)
	}
	const window, allowed = 2 * time.Second, 3
	tick := time.NewTicker(window)
	defer tick.Stop()
	best := -1
	for range 15 { // what the start has left to do comes first
		before := sleeps(t, c.Process.Pid)
		<-tick.C
		if n := sleeps(t, c.Process.Pid) - before; best < 0 || n < best {
			best = n
		}
		if best <= allowed {
			return
		}
	}
	t.Errorf("in the quietest %v its threads went to sleep %d times", window, best)
}

// A client with a watch costs this many goroutines: those that read and write its connection,
// one that looks after it, and the watch's.
const goroutinesPerClient = 4

func TestGoroutinesPerClient(t *testing.T) {
	const clients = 40
	c := startChild(t, "--data-dir="+filepath.Join(t.TempDir(), "data"))
	idleWatches(t, c.url, 1)
	before := goroutines(t, c.url)
	idleWatches(t, c.url, clients)
	if n := goroutines(t, c.url) - before; n > clients*goroutinesPerClient+2 { // and those of the connection that asks
		t.Errorf("%d clients with a watch each have %d goroutines, at most %d each are expected", clients, n, goroutinesPerClient)
	}
}

func goroutines(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the metrics do not tell the number of goroutines")
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
