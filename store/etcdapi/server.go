// Package etcdapi is the network face of a store: etcd's v3 gRPC services, and
// the HTTP pages for health, metrics, version and JSON, on one port.
//
// It keeps no state that must survive: everything durable is in the store.
// DESIGN.md says how the parts work together.
package etcdapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/tarn-kv/tarn/store"
)

// Defaults of Config; those that have a counterpart in etcd have its value.
const (
	DefaultName             = "default"
	DefaultPeerURL          = "http://localhost:2380"
	DefaultMaxRequestBytes  = 3 << 19 // 1.5 MiB
	DefaultMaxTxnOps        = 128
	DefaultKeepAliveMinTime = 5 * time.Second
	DefaultKeepAliveTime    = 2 * time.Hour
	DefaultKeepAliveTimeout = 20 * time.Second
)

// stopGrace is how long Stop waits for bytes that are written but not yet sent,
// and for streams to end, after the last request is answered.
const stopGrace = 250 * time.Millisecond

// handlerGrace is how long Stop waits for handlers whose connection is closed.
const handlerGrace = 5 * time.Second

// Config configures a Server. Only Store is needed.
type Config struct {
	Store  *store.Store
	Logger *slog.Logger // default: discards

	// Name is the member's name in MemberList; never empty (a member without a
	// name counts as not started).
	Name string
	// ClientURLs are advertised in MemberList. Clients that ask for the members
	// connect to them, so they must be reachable for clients.
	ClientURLs []string
	// PeerURL stands for the peer port that this server does not have; it may be
	// several, with commas. The member's ID is made from it, so it must not change.
	PeerURL string

	MaxRequestBytes int    // largest write request; default 1.5 MiB
	MaxTxnOps       int    // operations per branch of a transaction; default 128
	MaxStreams      uint32 // requests and watches open on one connection; default no limit
	ListBudget      int64  // bytes of range answers that may be in memory at once; default DefaultListBudget()

	// TLS, if set, is spoken on listeners (see Serve). Its NextProtos is ignored.
	TLS *tls.Config

	// KeepAliveMinTime is how often a client may send pings; one that does so
	// more often is disconnected. Default 5 s.
	KeepAliveMinTime time.Duration
	// KeepAliveTime and KeepAliveTimeout are for pings of the server: sent after
	// this time without traffic, and how long the answer may take. Default 2 h
	// and 20 s.
	KeepAliveTime, KeepAliveTimeout time.Duration

	EnablePprof      bool           // offer /debug/pprof/
	SaveProcessors   bool           // use one processor of the process (GOMAXPROCS) while there is little to do
	LogLevel         *slog.LevelVar // if set, /debug/log-level changes it
	MetricsExtensive bool           // also export a histogram of handling times per method
	Durations        *Durations     // what the store observed; nil: an empty one
	// DiskWait tells how long the oldest file operation has been under way; nil: it is not known.
	// It must not wait for the disk.
	DiskWait func() time.Duration

	// AuthToken says what tokens to give to users who gave their password: "simple",
	// or "jwt" with options (see ValidateAuthToken). Default "simple".
	AuthToken string
	// AuthTokenTTL is how long a simple token lives after its last use. Default 300 s.
	AuthTokenTTL time.Duration
	// BcryptCost is the effort of hashing a password. Default 10.
	BcryptCost int
	// ClientCertAuth takes the CommonName of a client's certificate for its user, if
	// it sends no token.
	ClientCertAuth bool

	// CORS are the origins whose web pages may read from this server; default
	// "*". For requests in JSON, which could write, an origin must be named.
	CORS []string
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.PeerURL == "" {
		c.PeerURL = DefaultPeerURL
	}
	if c.MaxRequestBytes <= 0 {
		c.MaxRequestBytes = DefaultMaxRequestBytes
	}
	if c.MaxTxnOps <= 0 {
		c.MaxTxnOps = DefaultMaxTxnOps
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = math.MaxUint32
	}
	if c.ListBudget <= 0 {
		c.ListBudget = DefaultListBudget()
	}
	if c.KeepAliveMinTime <= 0 {
		c.KeepAliveMinTime = DefaultKeepAliveMinTime
	}
	if c.KeepAliveTime <= 0 {
		c.KeepAliveTime = DefaultKeepAliveTime
	}
	if c.KeepAliveTimeout <= 0 {
		c.KeepAliveTimeout = DefaultKeepAliveTimeout
	}
	if c.AuthToken == "" {
		c.AuthToken = DefaultAuthToken
	}
	if c.AuthTokenTTL <= 0 {
		c.AuthTokenTTL = DefaultAuthTokenTTL
	}
	if c.BcryptCost < MinBcryptCost || c.BcryptCost > MaxBcryptCost {
		c.BcryptCost = DefaultBcryptCost
	}
	if c.Durations == nil {
		c.Durations = NewDurations()
	}
	if len(c.CORS) == 0 {
		c.CORS = []string{"*"}
	}
	return c
}

// Server serves one store. Its methods may be called from any goroutine.
type Server struct {
	store *store.Store
	cfg   Config
	log   *slog.Logger

	clusterID, memberID uint64
	term                uint64

	// stop is closed when Stop begins. Handlers of streams that would wait for
	// a client or for events end with errStopped then.
	stop     chan struct{}
	stopOnce sync.Once

	tokens    tokens
	passwords *passwords

	calls   *calls
	budget  *listBudget // of large range answers
	fills   *fillBuffers
	shared  *sharedLists
	turns   *sendTurns // of large range answers
	stalls  *stalls
	senders chan *watchStream // to goroutines that wait for one
	procs   *processors       // nil: as many as the runtime wants
	metrics http.Handler
	grpc    *grpc.Server
	grpcIn  *connQueue
	http    *http.Server
	httpIn  *connQueue
	health  *healthChecks
	gateway *gateway
	conns   connSet

	mu         sync.Mutex
	listeners  []net.Listener
	metricSrvs []*http.Server
	serving    sync.WaitGroup
}

// New returns a server for cfg.Store. It tells the store which member it is.
// Nothing is accepted before Serve is called.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil {
		return nil, errors.New("etcdapi: new server: no store is given")
	}
	cfg = cfg.withDefaults()
	s := &Server{
		store:  cfg.Store,
		cfg:    cfg,
		log:    cfg.Logger,
		term:   uint64(cfg.Store.Term()),
		stop:   make(chan struct{}),
		grpcIn: newConnQueue(),
		httpIn: newConnQueue(),

		senders: make(chan *watchStream),
	}
	s.memberID = memberID(cfg.PeerURL, cfg.Store.ID())
	s.clusterID = clusterID(s.memberID)
	cfg.Store.SetMemberID(s.memberID)

	var err error
	if s.tokens, err = newTokens(cfg.AuthToken, cfg.AuthTokenTTL); err != nil {
		return nil, fmt.Errorf("etcdapi: new server: %w", err)
	}
	s.passwords = newPasswords(cfg.BcryptCost)
	s.health = newHealthChecks(s)
	s.calls = newCalls()
	s.budget = newListBudget(cfg.ListBudget, s.log)
	s.stalls = newStalls(s.log)
	s.budget.late = func() { s.stalls.cut(time.Now().Add(-stallLimit)) }
	s.fills = newFillBuffers()
	s.shared = newSharedLists()
	s.turns = newSendTurns(runtime.GOMAXPROCS(0), s.log)
	if cfg.SaveProcessors {
		s.procs = newProcessors(s.log)
	}
	s.grpc = s.newGRPCServer()
	s.calls.prepare(s.grpc.GetServiceInfo())
	reg, err := s.newRegistry()
	if err != nil {
		return nil, fmt.Errorf("etcdapi: new server: register metrics: %w", err)
	}
	s.metrics = newMetricsHandler(reg)
	if s.gateway, err = newGateway(s); err != nil {
		return nil, fmt.Errorf("etcdapi: new server: %w", err)
	}
	s.http = s.newHTTPServer(s.clientMux())
	if s.store.Auth().Enabled() {
		s.warnUnusedNames()
	}
	s.startSenders()
	s.serving.Go(func() { s.serveQueue("gRPC", s.grpc.Serve, s.grpcIn) })
	s.serving.Go(func() { s.serveQueue("HTTP", s.http.Serve, s.httpIn) })
	return s, nil
}

// serveQueue runs a server on the connections that Serve sorted out for it.
func (s *Server) serveQueue(name string, serve func(net.Listener) error, q *connQueue) {
	err := serve(q)
	if err != nil && !s.stopping() && !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("the server for client connections ended", "protocol", name, "error", err)
	}
}

// header is the ResponseHeader of an answer given at a revision.
func (s *Server) header(revision int64) *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{
		ClusterId: s.clusterID,
		MemberId:  s.memberID,
		Revision:  revision,
		RaftTerm:  s.term,
	}
}

// currentHeader is header with the revision published now.
func (s *Server) currentHeader() *etcdserverpb.ResponseHeader {
	return s.header(s.store.Revision())
}

func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// Stop ends the server: no new connections, streams end at once with
// UNAVAILABLE (clients resume them elsewhere or later), requests in flight are
// answered, then all connections are closed. When ctx ends first, what is still
// in flight is cut off and ctx's error returned. The store stays open.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stop) })
	s.closeListeners()
	s.procs.widen() // the last checkpoint comes
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	err := s.drain(ctx, done)
	s.stopHTTP(ctx)
	s.conns.closeAll()
	s.gateway.conn.Close()
	s.tokens.dropAll()
	if e := s.cutOff(); e != nil {
		return e
	}
	s.serving.Wait()
	return err
}

// cutOff closes all connections and waits for the handlers, which see their
// contexts end. The store must not be closed under a handler that does not.
func (s *Server) cutOff() error {
	done := make(chan struct{})
	go func() {
		s.grpc.Stop()
		close(done)
	}()
	limit := time.NewTimer(handlerGrace)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-limit.C:
		return fmt.Errorf("etcdapi: stop: a request handler did not end within %v after its connection was closed", handlerGrace)
	}
}

// drain waits until the graceful stop is done, or all single requests are
// answered and the streams had their grace. A client that does not read would
// otherwise hold the stop up.
func (s *Server) drain(ctx context.Context, done <-chan struct{}) error {
	idle := s.calls.unaryIdle()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-idle:
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-grace.C:
	}
	return nil
}
