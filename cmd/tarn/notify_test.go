package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/systemd"
)

// notifySocket is what systemd listens on to be told of a service's state.
type notifySocket struct {
	path     string
	messages chan string
}

func listenNotify(t *testing.T) *notifySocket {
	t.Helper()
	n := &notifySocket{path: filepath.Join(t.TempDir(), "notify"), messages: make(chan string, 10_000)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: n.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		defer close(n.messages)
		b := make([]byte, 4096)
		for {
			k, err := conn.Read(b)
			if err != nil {
				return
			}
			n.messages <- string(b[:k])
		}
	}()
	return n
}

// await returns the messages up to the first that has a text in it, that one included.
func (n *notifySocket) await(t *testing.T, text string) (messages []string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case m := <-n.messages:
			messages = append(messages, m)
			if strings.Contains(m, text) {
				return messages
			}
		case <-limit:
			t.Fatalf("systemd is not told %q, but %q", text, messages)
		}
	}
}

// has tells whether one of the messages has a text in it.
func has(messages []string, text string) bool {
	return strings.Contains(strings.Join(messages, "\n"), text)
}

// notified lets a server in this process tell systemd of its state.
func notified(t *testing.T, n *notifySocket, watchdog time.Duration) func(*serving) {
	t.Setenv("NOTIFY_SOCKET", n.path)
	return func(s *serving) {
		s.manager.notify = systemd.NewNotifier(s.log)
		s.manager.watchdog = watchdog
	}
}
