package difftest

import (
	"context"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"
)

// Self stands for the server's own member id in a request.
const Self = uint64(0x5e1f5e1f5e1f5e1f)

// stepTimeout bounds one step on one server.
const stepTimeout = 60 * time.Second

// Session is the state of one case on one server. Only one step at a time uses it.
type Session struct {
	Server  *Server
	Bins    Binaries
	watches map[string]*watch
	tokens  map[string]string
	pending map[string]*pending

	// Revisions above filledFrom are compared after subtracting shift; 0 when
	// the servers' histories are equal.
	filledFrom, shift int64
}

func newSession(s *Server, b Binaries) *Session {
	return &Session{Server: s, Bins: b, watches: map[string]*watch{}, tokens: map[string]string{}, pending: map[string]*pending{}}
}

func (s *Session) close() {
	for _, w := range s.watches {
		w.cancel()
	}
	clear(s.watches)
	for _, p := range s.pending {
		p.cancel()
	}
	clear(s.pending)
}

// ownIDs replaces the server's own ids and addresses in text, decimal and hexadecimal.
func (s *Session) ownIDs(text string) string {
	sv := s.Server
	pairs := []string{sv.Client, "<own address>"}
	for id, name := range map[uint64]string{sv.Member: "<own member id>", sv.Cluster: "<own cluster id>"} {
		if id != 0 {
			pairs = append(pairs, strconv.FormatUint(id, 10), name, strconv.FormatUint(id, 16), name)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// as returns ctx with the token of a user, who must have logged in before.
func (s *Session) as(ctx context.Context, user string) context.Context {
	if user == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "token", s.tokens[user])
}

func (s *Session) kv() pb.KVClient { return pb.NewKVClient(s.Server.conn) }

// revision returns rev as it is compared.
func (s *Session) revision(rev int64) int64 {
	if rev > s.filledFrom {
		return rev - s.shift
	}
	return rev
}

// current reads the store revision.
func (s *Session) current(ctx context.Context) (int64, error) {
	r, err := s.kv().Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return 0, err
	}
	return r.Header.Revision, nil
}
