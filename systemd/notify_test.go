package systemd

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNotifier sends over a real socket.
func TestNotifier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	n := NewNotifier(discard)
	receive := func() string {
		b := make([]byte, 4096)
		k, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:k])
	}
	expect := func(want string) {
		t.Helper()
		if got := receive(); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	n.Ready("well")
	expect("READY=1\nSTATUS=well")
	n.Status("well") // is told already
	n.Status("bad:\nvery")
	expect("STATUS=bad: very") // a line that STATUS= must not be able to add
	n.ExtendTimeout(90*time.Second, "")
	expect("EXTEND_TIMEOUT_USEC=90000000")

	var before, after unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
		t.Fatal(err)
	}
	n.Reloading()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &after); err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(receive(), "RELOADING=1\nMONOTONIC_USEC=")
	at, err := strconv.ParseInt(rest, 10, 64)
	if !ok || err != nil || at < before.Nano()/1000 || at > after.Nano()/1000 {
		t.Errorf("the reload began at %q, between %d and %d", rest, before.Nano()/1000, after.Nano()/1000)
	}
	n.Ready("bad: very")
	expect("READY=1")
	n.Stopping("enough")
	expect("STOPPING=1\nSTATUS=enough")
}

// Nobody who listens is no reason for anything but one warning.
func TestNotifierUnheard(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	text := new(logText)
	n := NewNotifier(slog.New(slog.NewTextHandler(text, nil)))
	n.Ready("well")
	n.Status("better")
	if got := strings.Count(text.String(), "systemd could not be told"); got != 1 {
		t.Errorf("%d warnings:\n%s", got, text)
	}
	failing := errors.New("refused")
	n.send = func(string) error { return failing }
	n.Status("worse")
	failing = nil
	n.Status("good")
	failing = errors.New("refused again")
	n.Status("bad")
	if got := strings.Count(text.String(), "systemd could not be told"); got != 2 {
		t.Errorf("%d warnings after it went well once:\n%s", got, text)
	}
}

// Without systemd everything is there and does nothing.
func TestNobodyAsked(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n := NewNotifier(discard)
	if n != nil {
		t.Fatal("a notifier without a socket")
	}
	n.Ready("")
	n.Status("")
	n.Reloading()
	n.ExtendTimeout(time.Second, "")
	n.Stopping("")
	r := NewReporter(n, func() string { t.Error("a status was asked for"); return "" })
	r.Event()
	r.Now()
	r.Run(t.Context())
	rec := NewRecovery(n, discard, nil)
	rec.Advance(1)
	rec.Run(t.Context())
	NewWatchdog(n, discard, time.Second, nil).Run(t.Context())
}

func TestWatchdogInterval(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		usec, pid string
		want      time.Duration
		fails     bool
	}{
		{"", "", 0, false},
		{"60000000", "", time.Minute, false},
		{"60000000", self, time.Minute, false},
		{"60000000", "1", 0, false},
		{"soon", self, 0, true},
		{"0", self, 0, true},
		{"1", self, 0, true},
		{"999999", self, 0, true},
		{"1000000", self, time.Second, false},
		{"1", "1", 0, false},
	} {
		t.Setenv("NOTIFY_SOCKET", "/run/nobody")
		t.Setenv("WATCHDOG_USEC", tt.usec)
		t.Setenv("WATCHDOG_PID", tt.pid)
		got, err := WatchdogInterval()
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%q for %q: %v, %v", tt.usec, tt.pid, got, err)
		}
		if left := slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, "WATCHDOG_") }); len(left) > 0 {
			t.Errorf("a program that is started would get %q", left)
		}
	}
}
