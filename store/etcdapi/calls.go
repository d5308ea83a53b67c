package etcdapi

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// maxClientVersions bounds the label values that clients can make up.
const maxClientVersions = 32

const codeCount = int(codes.Unauthenticated) + 1

// calls counts what the gRPC server does. The map is filled before the server
// serves and only read afterwards; all else is atomic.
type calls struct {
	methods                  map[string]*methodCalls
	sentBytes, receivedBytes atomic.Uint64

	unary    atomic.Int64 // single requests being answered
	draining atomic.Bool
	idle     chan struct{} // closed when draining and unary is 0
	idleOnce sync.Once

	versionsMu sync.RWMutex
	versions   map[clientKind]*atomic.Uint64
}

// methodCalls are the counters of one method.
type methodCalls struct {
	typ, service, method    string
	started, received, sent atomic.Uint64
	handled                 [codeCount]atomic.Uint64
	seconds                 prometheus.Observer // nil unless extensive metrics are on
}

// clientKind is a pair of labels of etcd_server_client_requests_total.
type clientKind struct {
	typ     string // "unary" or "stream"
	version string // the client's API version
}

func newCalls() *calls {
	return &calls{
		methods:  make(map[string]*methodCalls),
		idle:     make(chan struct{}),
		versions: make(map[clientKind]*atomic.Uint64),
	}
}

// prepare makes the counters of all methods, so that each is exported with 0
// before its first call and none is looked up by labels later.
func (c *calls) prepare(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, m := range info.Methods {
			c.methods["/"+service+"/"+m.Name] = &methodCalls{
				typ: methodType(m), service: service, method: m.Name,
			}
		}
	}
}

func methodType(m grpc.MethodInfo) string {
	switch {
	case m.IsClientStream && m.IsServerStream:
		return "bidi_stream"
	case m.IsClientStream:
		return "client_stream"
	case m.IsServerStream:
		return "server_stream"
	default:
		return "unary"
	}
}

// beginUnary returns the number of single requests being answered, the new one included.
func (c *calls) beginUnary() int64 { return c.unary.Add(1) }

func (c *calls) endUnary() {
	if c.unary.Add(-1) == 0 && c.draining.Load() {
		c.idleOnce.Do(func() { close(c.idle) })
	}
}

// unaryIdle starts draining: the channel it returns is closed once no single
// request is being answered.
func (c *calls) unaryIdle() <-chan struct{} {
	c.draining.Store(true)
	if c.unary.Load() == 0 {
		c.idleOnce.Do(func() { close(c.idle) })
	}
	return c.idle
}

// client counts a request by what kind of client sent it.
func (c *calls) client(k clientKind) {
	c.versionsMu.RLock()
	n := c.versions[k]
	c.versionsMu.RUnlock()
	if n == nil {
		n = c.newClient(k)
	}
	n.Add(1)
}

func (c *calls) newClient(k clientKind) *atomic.Uint64 {
	c.versionsMu.Lock()
	defer c.versionsMu.Unlock()
	if len(c.versions) >= maxClientVersions {
		k.version = "other"
	}
	n := c.versions[k]
	if n == nil {
		n = new(atomic.Uint64)
		c.versions[k] = n
	}
	return n
}
