package systemd

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// Notifier tells the service manager about this process. A nil Notifier tells nobody anything.
// Its methods are safe for concurrent use; what they tell arrives in the order of the calls.
type Notifier struct {
	log  *slog.Logger
	send func(message string) error

	mu     sync.Mutex
	status string // told last
	ending bool   // Stopping was called
	failed bool   // the last message did not arrive
}

// NewNotifier returns a notifier, or nil if nobody wants to be told: NOTIFY_SOCKET is not set.
func NewNotifier(log *slog.Logger) *Notifier {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	return &Notifier{log: log, send: func(message string) error {
		_, err := daemon.SdNotify(false, message)
		return err
	}}
}

// Ready tells that the service serves, or that it has ended a reload.
func (n *Notifier) Ready(status string) { n.tell(daemon.SdNotifyReady, status) }

// Status replaces the status line; nothing is sent if it stays the same.
func (n *Notifier) Status(status string) { n.tell("", status) }

// Reloading tells that a reload has begun; Ready ends it.
func (n *Notifier) Reloading() {
	// Type=notify-reload compares it with the time at which the signal was sent.
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		n.warn(err)
		return
	}
	n.tell(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, at.Nano()/1000), "")
}

// Stopping tells that the service ends, and why. What a Reporter has to tell later does not
// take the place of that.
func (n *Notifier) Stopping(status string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.ending = true
	n.mu.Unlock()
	n.tell(daemon.SdNotifyStopping, status)
}

func (n *Notifier) stopping() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ending
}

// ExtendTimeout asks for this much time, from now on, for the start or the stop that is under way.
func (n *Notifier) ExtendTimeout(d time.Duration, status string) {
	n.tell(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()), status)
}

// feed tells that the service is alive.
func (n *Notifier) feed() { n.tell(daemon.SdNotifyWatchdog, "") }

// tell sends a message and, unless it is empty or the same as before, a status.
func (n *Notifier) tell(message, status string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	status = strings.ReplaceAll(status, "\n", " ")
	if status != "" && status != n.status {
		n.status = status
		message = strings.TrimPrefix(message+"\nSTATUS="+status, "\n")
	}
	if message == "" {
		return
	}
	err := n.send(message)
	if err != nil && !n.failed {
		n.warn(err)
	}
	n.failed = err != nil
}

func (n *Notifier) warn(err error) {
	n.log.Warn("systemd could not be told how the service is; it may take it for dead. NotifyAccess=main and AF_UNIX in RestrictAddressFamilies= are needed in the unit",
		"error", err)
}
