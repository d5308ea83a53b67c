package embed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
)

// The ports given out lie below the range from which the system takes ports for
// outgoing connections, so that none is taken before its server listens.
const firstPort, lastPort = 15_000, 32_000

var nextPort atomic.Int64

func init() { nextPort.Store(rand.Int64N(lastPort - firstPort)) }

// freeURL returns a URL on this machine that nobody listens on and that this
// process has not given out before. Its scheme is the one that the
// configuration asks for.
func freeURL(c *Config) (url.URL, error) {
	u := url.URL{Scheme: "http"}
	if len(c.ListenClientUrls) > 0 {
		u.Scheme = c.ListenClientUrls[0].Scheme
	}
	var last error
	for range lastPort - firstPort {
		port := firstPort + nextPort.Add(1)%(lastPort-firstPort)
		// The test's certificate is for this name.
		u.Host = net.JoinHostPort("localhost", strconv.FormatInt(port, 10))
		l, err := net.Listen("tcp", u.Host)
		if err == nil {
			return u, l.Close()
		}
		last = err
	}
	return u, fmt.Errorf("find a free port from %d to %d: %w", firstPort, lastPort, last)
}
