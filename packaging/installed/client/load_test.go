package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRestartsWithHandedSockets: with listening sockets that stay, a server can be restarted
// as often as one likes, and no client sees more than a late answer.
func TestRestartsWithHandedSockets(t *testing.T) {
	s := newServer(t, true)
	s.start()
	restarts := 10
	if n, err := strconv.Atoi(os.Getenv("RESTARTS")); err == nil {
		restarts = n
	}
	err := s.loadDuring(func() {
		for range restarts {
			time.Sleep(300 * time.Millisecond) // some load
			s.stop()
			s.start()
			s.awaitAnswer() // before that it does not know how to end in order
		}
	})
	if err != nil {
		t.Errorf("%v\n%s", err, s.log.String())
	}
	s.stop()
	s.start()
	if err := runCheck(t.Context(), s.settings()); err != nil {
		t.Error(err)
	}
	s.stop()
}

// TestRestartWithOwnSockets: the load notices a server whose sockets go with it.
func TestRestartWithOwnSockets(t *testing.T) {
	s := newServer(t, false)
	s.start()
	s.awaitAnswer()
	err := s.loadDuring(func() {
		s.stop()
		time.Sleep(200 * time.Millisecond) // in which clients knock
		s.start()
		s.awaitAnswer()
	})
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a server that was away was noticed as: %v", err)
	}
	s.stop()
}
