package etcdapi

import (
	"context"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/tarn-kv/tarn/store"
)

// How the chunks of a stream grow (RS-7).
const (
	firstChunkKeys = 10
	goodChunkBytes = 3 << 19 // 1.5 MiB
	maxChunkBytes  = 2 * goodChunkBytes
)

// nextChunkKeys is how many keys the next chunk may have, after one of the given
// size with at most keys keys.
func nextChunkKeys(keys, size int) int {
	switch {
	case size < goodChunkBytes/2:
		return keys * 2
	case size > maxChunkBytes:
		return max(keys/2, 1)
	default:
		return keys
	}
}

// RangeStream sends a range in chunks, all of one revision: a compaction in the
// middle does not end it (V-14).
func (k *kvService) RangeStream(req *pb.RangeRequest, stream grpc.ServerStream) error {
	if err := checkRangeStream(req); err != nil {
		return err
	}
	ctx := stream.Context()
	r, err := k.s.store.NewReader(ctx, req.Revision)
	if err != nil {
		return err
	}
	defer r.Close()
	keys := store.KeyRange{Key: req.Key, End: req.RangeEnd}
	l := listing{head: k.s.head(r.Current()), keysOnly: req.KeysOnly, count: r.Count(keys)}
	var want int64
	if !req.CountOnly {
		want = l.cut(req.Limit)
	}
	c := chunker{s: k.s, scan: r.Scan(keys), listing: l, left: want, keys: firstChunkKeys}
	for done := false; !done; {
		if k.s.stopping() {
			return errStopped
		}
		var m raw
		if m, done, err = c.next(ctx); err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

// chunker makes the chunks of one stream.
type chunker struct {
	s       *Server
	scan    *store.Scanner
	listing listing
	left    int64 // keys to send
	keys    int   // most keys of the next chunk
	items   []store.Item
}

// next returns the next chunk. The last one, also if it is the only one and
// empty, has the header, more and count (RS-2, RS-11).
func (c *chunker) next(ctx context.Context) (_ raw, last bool, err error) {
	c.items = c.items[:0]
	if n := int(min(int64(c.keys), c.left)); n > 0 {
		most := maxChunkBytes // also when small values are followed by large ones
		if c.listing.keysOnly {
			most = math.MaxInt // counts values
		}
		c.items = c.scan.Next(c.items, n, most)
		c.left -= int64(len(c.items))
	}
	last = c.left == 0 || len(c.items) == 0
	size := itemsSize(c.items, rangeKvs, c.listing.keysOnly)
	g, err := c.s.reserve(ctx, int64(size))
	if err != nil {
		return nil, false, err
	}
	m := message{grant: g}
	if err := c.fill(&m, last); err != nil {
		m.drop()
		return nil, false, err
	}
	c.keys = nextChunkKeys(c.keys, size)
	return m.take(), last, nil
}

func (c *chunker) fill(m *message, last bool) error {
	m.add([]byte{0}) // room for the prefix, whose length depends on what follows
	m.size = 0
	if last {
		m.add(c.listing.head.append(nil))
	}
	if err := m.addItems(c.s.store, c.items, rangeKvs, c.listing.keysOnly); err != nil {
		return err
	}
	if last {
		m.add(appendRangeEnd(nil, c.listing.more, c.listing.count))
	}
	m.pieces[0] = mem.SliceBuffer(appendPrefix(nil, streamRange, m.size))
	return nil
}
