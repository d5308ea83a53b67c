package systemd

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

// discard is a log that nobody reads.
var discard = slog.New(slog.DiscardHandler)

// told collects what a notifier tells.
type told struct {
	mu       sync.Mutex
	messages []string
}

func (r *told) send(message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
	return nil
}

// take returns what came since the last call.
func (r *told) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.messages
	r.messages = nil
	return list
}

func count(messages []string, part string) (n int) {
	for _, m := range messages {
		if slices.ContainsFunc(strings.Split(m, "\n"), func(line string) bool { return strings.HasPrefix(line, part) }) {
			n++
		}
	}
	return n
}

func newTold() (*Notifier, *told) {
	r := new(told)
	return &Notifier{log: discard, send: r.send}, r
}

// logText is a log that can be read.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
