package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// The ports given out lie below the range from which the system takes ports for
// outgoing connections, so that none is taken while its server restarts.
const firstPort, lastPort = 15_000, 32_000

var nextPort atomic.Int64

func init() { nextPort.Store(rand.Int64N(lastPort - firstPort)) }

// freeAddress returns a loopback address that nobody listens on and that this
// process has not given out lately.
func freeAddress() (string, error) {
	var last error
	for range lastPort - firstPort {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+nextPort.Add(1)%(lastPort-firstPort))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		last = err
	}
	return "", fmt.Errorf("find a free port from %d to %d: %w", firstPort, lastPort, last)
}
